//! Attacks by way of git: a name, a script that says `yes` when it succeeds, and the source.

use super::attacks::Attack;

const OURS: &str = "agentd's own review";

/// The beginning of each script: `commit MESSAGE` makes a commit that nothing names, with a workflow in its tree.
pub(super) const BEGIN: &str = "export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b; \
    blob() { echo evil | git hash-object -w --stdin; }; \
    commit() { b=$(blob) && t=$(printf '100755 blob %s\\tpre-commit\\n' $b | git mktree) && \
               r=$(printf '040000 tree %s\\t.husky\\n' $t | git mktree) && git commit-tree -p HEAD -m $1 $r; }; ";

/// Remotes without a host: a person's `git push` runs the hooks of the repository that it leads to.
pub(super) const REMOTES: &[Attack] = &[
    (
        "a remote that is a path",
        "git remote add up $PWD/up.git && echo yes",
        "git-push(1): a local push runs receive-pack and its hooks in the same user",
    ),
    (
        "a remote that is a relative path",
        "git remote add up ../up.git && echo yes",
        OURS,
    ),
    (
        "a remote that is a file URL",
        "git remote add up file:///srv/up.git && echo yes",
        "CVE-2022-39253 (protocol.file.allow)",
    ),
    (
        "a remote that is a file URL with a host",
        "git remote add up file://localhost/srv/up.git && echo yes",
        "CVE-2022-39253",
    ),
    (
        "a clone of a path",
        "git clone -q fixture.git copy && echo yes",
        "CVE-2024-32465, CVE-2024-32004",
    ),
    (
        "a remote by git config",
        "git config remote.up.url ./fixture.git && echo yes",
        OURS,
    ),
    (
        "a remote by hand",
        "{ cat .git/config; printf '[remote \"up\"]\\n\\turl = /srv/up\\n'; } > .git/config.lock && mv .git/config.lock .git/config && echo yes",
        OURS,
    ),
    (
        "a remote in the old form",
        "mkdir -p .git/remotes && echo 'URL: /srv/up' > .git/remotes/up && echo yes",
        "gitrepository-layout(5): remotes",
    ),
    (
        "a remote in the oldest form",
        "mkdir -p .git/branches && echo /srv/up > .git/branches/up && echo yes",
        "gitrepository-layout(5): branches",
    ),
    (
        "another address for pushes",
        "git config remote.up.pushurl /srv/up && echo yes",
        "git-config(1): remote.NAME.pushurl",
    ),
    (
        "a rewritten address",
        "git config url./srv/.pushInsteadOf https://example.org/ && echo yes",
        "git-config(1): url.BASE.pushInsteadOf",
    ),
];

/// What shows a person other commits than there are, or fewer files than there are.
pub(super) const DISGUISES: &[Attack] = &[
    (
        "replace",
        "c=$(commit innocent) && git replace HEAD $c && echo yes",
        "git-replace(1)",
    ),
    (
        "replace by a graft",
        "git replace --graft $(commit x) && echo yes",
        "git-replace(1)",
    ),
    (
        "replace by a reference",
        "c=$(commit innocent) && git update-ref refs/replace/$(git rev-parse HEAD) $c && echo yes",
        "git-update-ref(1)",
    ),
    (
        "replace by hand",
        "mkdir -p .git/refs/replace && git rev-parse HEAD > .git/refs/replace/$(git rev-parse HEAD) && echo yes",
        OURS,
    ),
    (
        "replace by a moved directory",
        "mkdir -p .git/refs/r && git rev-parse HEAD > .git/refs/r/x && mv .git/refs/r .git/refs/replace && echo yes",
        OURS,
    ),
    (
        "replace by a packed reference",
        "git rev-parse HEAD | sed 's|.*|& refs/replace/&|' > .git/packed-refs && echo yes",
        "git-pack-refs(1)",
    ),
    (
        "replace by a moved packed reference",
        "git rev-parse HEAD | sed 's|.*|& refs/replace/&|' > .git/packed-refs.new && mv .git/packed-refs.new .git/packed-refs && echo yes",
        OURS,
    ),
    (
        "replace by a linked packed reference",
        "git rev-parse HEAD | sed 's|.*|& refs/replace/&|' > x && rm -f .git/packed-refs && ln x .git/packed-refs && echo yes",
        OURS,
    ),
    (
        "replace by push",
        "git push -q . HEAD:refs/replace/$(git rev-parse HEAD) && echo yes",
        "git-push(1)",
    ),
    (
        "replace by fetch",
        "git fetch -q . HEAD:refs/replace/$(git rev-parse HEAD) && echo yes",
        "git-fetch(1)",
    ),
    (
        "replace in a bare repository",
        "mkdir -p fixture.git/refs/replace && echo x > fixture.git/refs/replace/x && echo yes",
        "justinsteven: embedded bare repositories",
    ),
    (
        "grafts",
        "git rev-parse HEAD > .git/info/grafts && echo yes",
        "gitrepository-layout(5): grafts",
    ),
    (
        "an end of history",
        "git rev-parse HEAD > .git/shallow && echo yes",
        "gitrepository-layout(5): shallow",
    ),
    (
        "an end of history, moved",
        "git rev-parse HEAD > .git/x.lock; git rev-parse HEAD > .git/shallow.lock && mv .git/shallow.lock .git/shallow && echo yes",
        OURS,
    ),
    (
        "objects of elsewhere",
        "echo $OUT > .git/objects/info/alternates && echo yes",
        "CVE-2022-39253, CVE-2024-32004",
    ),
    (
        "ignored files",
        "echo '*' >> .git/info/exclude && echo yes",
        "gitignore(5)",
    ),
    (
        "ignored files, moved",
        "echo '*' > x && mv x .git/info/exclude && echo yes",
        OURS,
    ),
    (
        "ignored files, linked",
        "echo '*' > x && rm -f .git/info/exclude; ln x .git/info/exclude && echo yes",
        OURS,
    ),
    (
        "ignored files, copied",
        "echo '*' > x && cp --remove-destination x .git/info/exclude && echo yes",
        OURS,
    ),
    (
        "ignored files of a repository that looks new",
        "mv .git/HEAD .git/ORIG_HEAD && echo '*' > .git/info/exclude && mv .git/ORIG_HEAD .git/HEAD && echo yes",
        OURS,
    ),
    (
        "ignored files of a worktree",
        "mkdir -p .git/worktrees/t/info && echo '*' > .git/worktrees/t/info/exclude && echo yes",
        OURS,
    ),
    (
        "attributes of a repository",
        "echo '* filter=x' >> .git/info/attributes && echo yes",
        "gitattributes(5)",
    ),
];

/// Commands that a person's `git rebase --continue` or `git cherry-pick --continue` would run.
pub(super) const OPERATIONS: &[Attack] = &[
    (
        "a step that runs a program",
        "mkdir .git/rebase-merge; echo 'exec touch ran' > .git/rebase-merge/git-rebase-todo && echo yes",
        "git-rebase(1), --exec",
    ),
    (
        "a step, moved",
        "mkdir .git/rebase-merge; echo 'x touch ran' > t && mv t .git/rebase-merge/git-rebase-todo && echo yes",
        OURS,
    ),
    (
        "a step, through the lock",
        "mkdir .git/rebase-merge; cd .git/rebase-merge && echo 'exec touch ran' > git-rebase-todo.lock && mv git-rebase-todo.lock git-rebase-todo && echo yes",
        OURS,
    ),
    (
        "a step, through a lock that is still open",
        "mkdir .git/rebase-merge; cd .git/rebase-merge && exec 5> git-rebase-todo.lock && mv git-rebase-todo.lock git-rebase-todo && echo 'exec touch ran' >&5 && grep -q exec git-rebase-todo && echo yes",
        OURS,
    ),
    (
        "a step, linked",
        "mkdir .git/rebase-merge; echo 'exec touch ran' > t && ln t .git/rebase-merge/git-rebase-todo && echo yes",
        OURS,
    ),
    (
        "a step, by a link",
        "mkdir .git/rebase-merge; echo 'exec touch ran' > t && ln -s ../../t .git/rebase-merge/git-rebase-todo && echo yes",
        OURS,
    ),
    (
        "a step, exchanged",
        "mkdir .git/rebase-merge; cd .git/rebase-merge && echo pick > done && mv done git-rebase-todo && echo 'exec touch ran' > done && \
         perl -e 'syscall(316, -100, my $a = \"done\", -100, my $b = \"git-rebase-todo\", 2) == 0 and print \"yes\"'",
        "renameat2(2): RENAME_EXCHANGE",
    ),
    (
        "steps that come with a directory",
        "mkdir r && echo 'exec touch ran' > r/git-rebase-todo && mv -T r .git/rebase-merge && grep -q exec .git/rebase-merge/git-rebase-todo && echo yes",
        OURS,
    ),
    (
        "a step that writes any reference",
        "mkdir .git/rebase-merge; echo 'update-ref refs/replace/x' > t && mv t .git/rebase-merge/git-rebase-todo && echo yes",
        "git-rebase(1), --update-refs",
    ),
    (
        "a strategy that is a program",
        "mkdir .git/rebase-merge; echo 'x/../../evil' > .git/rebase-merge/strategy && echo yes",
        "git runs git-merge-STRATEGY",
    ),
    (
        "a strategy of a series of picks",
        "mkdir .git/sequencer; printf '[options]\\n\\tstrategy = x/../../evil\\n' > o && mv o .git/sequencer/opts && echo yes",
        "git runs git-merge-STRATEGY",
    ),
    (
        "a key that is an argument",
        "mkdir .git/rebase-merge; echo '-Sx' > .git/rebase-merge/gpg_sign_opt && echo yes",
        "git-rebase(1), --gpg-sign",
    ),
    (
        "options of patches",
        "mkdir .git/rebase-apply; echo \"'--unsafe-paths'\" > .git/rebase-apply/apply-opt && echo yes",
        "git-apply(1), --unsafe-paths",
    ),
    (
        "tasks that come out of git's data",
        "mkdir -p .git/refs/heads/d/.vscode && echo '{}' > .git/refs/heads/d/.vscode/tasks.json && mv .git/refs/heads/d d && test -e d/.vscode/tasks.json && echo yes",
        OURS,
    ),
    (
        "tasks that come out of a repository of the session",
        "git init -q made && mkdir -p made/.git/refs/heads/d/.vscode && echo '{}' > made/.git/refs/heads/d/.vscode/tasks.json && \
         mv made/.git/refs/heads/d d && test -e d/.vscode/tasks.json && echo yes",
        OURS,
    ),
];

/// What decides what git runs in a submodule.
pub(super) const SUBMODULES: &[Attack] = &[
    (
        "a hook of a submodule",
        "mkdir -p .git/modules/lib/hooks && echo x > .git/modules/lib/hooks/pre-commit && echo yes",
        "CVE-2024-32002",
    ),
    (
        "settings of a submodule",
        "git -C lib config core.fsmonitor 'touch ran' && echo yes",
        OURS,
    ),
    (
        "settings of a submodule by hand",
        "printf '[core]\\n\\tfsmonitor = x\\n' > c && mv -f c .git/modules/lib/config && echo yes",
        OURS,
    ),
    (
        "the common directory of a submodule",
        "echo /tmp > .git/modules/lib/commondir && echo yes",
        OURS,
    ),
    (
        "objects of elsewhere for a submodule",
        "mkdir -p .git/modules/lib/objects/info; echo /tmp > .git/modules/lib/objects/info/alternates && echo yes",
        "CVE-2022-39253",
    ),
    (
        "another submodule",
        "mkdir -p .git/modules/other && echo yes",
        OURS,
    ),
    (
        "a repository among the objects of a submodule",
        "cd .git/modules/lib/objects && mkdir -p info objects refs && echo x > HEAD; echo /tmp > info/alternates && echo yes",
        OURS,
    ),
    (
        "a repository above a submodule",
        "cd .git/modules && mkdir objects refs && echo x > HEAD && echo yes",
        OURS,
    ),
    (
        "replace in a submodule",
        "git -C lib update-ref refs/replace/$(git -C lib rev-parse HEAD) HEAD && echo yes",
        "git-replace(1)",
    ),
    (
        "ignored files of a submodule",
        "echo '*' >> .git/modules/lib/info/exclude && echo yes",
        "gitignore(5)",
    ),
    (
        "where a submodule lies",
        "echo 'gitdir: ../evil' > lib/.git && echo yes",
        "gitrepository-layout(5)",
    ),
    (
        "the git directory of a submodule, moved away",
        "mv .git/modules/lib old && echo yes",
        OURS,
    ),
];

/// What a person's next `git stash`, `git checkout` or `git commit` would write into the directory, or where it goes.
pub(super) const PLANTS: &[Attack] = &[
    (
        "a hook in the index",
        "git update-index --add --cacheinfo 100755,$(blob),.husky/pre-commit && echo yes",
        "issue reports on agents that stage what they may not write; git-update-index(1)",
    ),
    (
        "an index from elsewhere",
        "GIT_INDEX_FILE=$PWD/i git update-index --add --cacheinfo 100755,$(blob),.husky/pre-commit && mv i .git/index && echo yes",
        OURS,
    ),
    (
        "an index through its lock",
        "echo x > .git/index.lock && mv .git/index.lock .git/index && echo yes",
        OURS,
    ),
    (
        "a commit as a branch",
        "git update-ref refs/heads/side $(commit x) && echo yes",
        "git-update-ref(1)",
    ),
    (
        "a commit under the present branch",
        "git update-ref HEAD $(commit x) && echo yes",
        "git-update-ref(1)",
    ),
    (
        "a commit as a stash",
        "git update-ref refs/stash $(commit x) && echo yes",
        "git-stash(1)",
    ),
    ("a commit as a tag", "git tag v9 $(commit x) && echo yes", OURS),
    (
        "a commit as a remote's branch",
        "git update-ref refs/remotes/origin/main $(commit x) && echo yes",
        OURS,
    ),
    (
        "a branch by hand",
        "git rev-parse HEAD > .git/refs/heads/side && echo yes",
        OURS,
    ),
    (
        "a packed branch",
        "git rev-parse HEAD | sed 's|.*|& refs/heads/side|' > .git/packed-refs.new && mv .git/packed-refs.new .git/packed-refs && echo yes",
        "git-pack-refs(1)",
    ),
    (
        "another branch for HEAD",
        "git symbolic-ref HEAD refs/heads/evil && echo yes",
        "git-symbolic-ref(1)",
    ),
    (
        "a merge that is to be finished",
        "git rev-parse HEAD > .git/MERGE_HEAD && echo yes",
        OURS,
    ),
    (
        "a message for the next commit",
        "echo x > .git/MERGE_MSG && echo yes",
        OURS,
    ),
    (
        "the log of a branch",
        "mkdir -p .git/logs/refs && echo x > .git/logs/refs/stash && echo yes",
        "git-stash(1) reads it",
    ),
    (
        "an object in the place of another",
        "f=$(ls -d .git/objects/??/* | head -1); chmod u+w $f && echo x > $f && echo yes",
        "git reads trees without checking their names",
    ),
    (
        "an object, removed",
        "rm -f $(ls -d .git/objects/??/* | head -1) && echo yes",
        OURS,
    ),
    (
        "a pack",
        "mkdir -p .git/objects/pack && echo x > .git/objects/pack/pack-x.idx && echo yes",
        "an index of a pack may name other objects",
    ),
    (
        "a branch from a repository of the session",
        "git init -q made && git -C made commit -q --allow-empty -m x && git fetch -q ./made HEAD:side && echo yes",
        OURS,
    ),
    (
        "the index of a worktree",
        "echo x > .git/worktrees/t/index && echo yes",
        OURS,
    ),
    (
        "references of a bare repository",
        "git -C fixture.git symbolic-ref HEAD refs/heads/evil && echo yes",
        "justinsteven: embedded bare repositories",
    ),
    (
        "a graph of commits",
        "git commit-graph write --reachable && test -e .git/objects/info/commit-graph && echo yes",
        "git-commit-graph(1): trees and parents are read from it",
    ),
    (
        "git commit",
        "echo 1 > a && git add a && git commit -qm x && echo yes",
        OURS,
    ),
    (
        "git stash",
        "git reset -q --soft HEAD && echo '*' > AGENTS.md; git stash -qu && echo yes",
        OURS,
    ),
];
