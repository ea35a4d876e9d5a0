//! Options that run, write or load, family by family.

use super::check;
use crate::danger::{Danger, danger};

/// A rule, a harmless command, and similar commands that run, write or load.
type Row = (&'static str, &'static str, &'static [&'static str]);

const ROWS: &[Row] = &[
    // The report, and GTFOBins for most of what follows.
    (
        "git:*",
        "git diff --stat",
        &[
            "git rebase -x ./x HEAD~1",
            "git rebase --exec=./x HEAD~1",
            "git submodule foreach ./x",
            "git difftool -x ./x",
            "git difftool --extcmd=./x",
            "git bisect run ./x",
            "git filter-branch --tree-filter ./x",
            "git grep -O./x y",
            "git diff --ext-diff",
            "git log --textconv",
            "git -c core.pager=./x log",
            "git --paginate log",
            "git --config-env=core.pager=X log",
            "git fetch --upload-pack=./x y",
            "git clone -u ./x y z",
            "git clone --config core.hooksPath=x y",
            "git init --template=x",
            "git commit -S",
            "git merge --gpg-sign=x y",
            "git daemon",
            "git send-email --smtp-server=./x y",
            // openai/codex pull request 15796 and issue 18694: options before the subcommand.
            "git --exec-path=x status",
            "git -p status",
            "git --namespace=x status",
            "git --work-tree=/ status",
            "git clone --recurse-submodules x",
        ],
    ),
    (
        "pylint:*",
        "pylint src",
        &[
            "pylint --init-hook=x src",
            "pylint --load-plugins=x src",
            "pylint --load-pl x",
            "pylint --rcfile=x src",
            "pylint --output=x src",
        ],
    ),
    (
        "gcc:*",
        "gcc -Wall -c x.c",
        &[
            "gcc -wrapper ./x y.c",
            "gcc -fplugin=./x.so y.c",
            "gcc -B. y.c",
            "gcc @x",
            "gcc -specs=x y.c",
            "gcc --specs=x y.c",
            "gcc -Wl,-plugin,x.so y.c",
            "gcc -fuse-ld=./x y.c",
            "gcc y.c -o .git/hooks/pre-commit",
            "gcc -MF x y.c",
        ],
    ),
    (
        "gcc-13:*",
        "gcc-13 -c x.c",
        &["gcc-13 -wrapper ./x y.c", "gcc-13 -B. y.c"],
    ),
    (
        "clang:*",
        "clang -O2 -c x.c",
        &[
            "clang -Xclang -load -Xclang ./x.so y.c",
            "clang -fplugin=./x.so y.c",
            "clang --config x y.c",
            "clang -fpass-plugin=x y.c",
        ],
    ),
    (
        "eslint:*",
        "eslint --fix src",
        &[
            "eslint -c x src",
            "eslint --config=x src",
            "eslint --rulesdir x src",
            "eslint --resolve-plugins-relative-to x src",
            "eslint --plugin x src",
            "eslint -f ./x src",
            "eslint --parser ./x src",
            "eslint -o x src",
        ],
    ),
    (
        "sqlite3:*",
        "sqlite3 -readonly x.db 'select 1'",
        &[
            "sqlite3 x.db '.shell ./x'",
            "sqlite3 x.db .read",
            "sqlite3 -cmd x y.db",
            "sqlite3 -init x y.db",
            "sqlite3 x.db 'select load_extension(1)'",
            "sqlite3 x.db 'select writefile(1,2)'",
        ],
    ),
    (
        "cmake:*",
        "cmake --version",
        &[
            "cmake -P x.cmake",
            "cmake -E rm x",
            "cmake --build x",
            "cmake -S x -B y",
            "cmake -DCMAKE_C_COMPILER=./x .",
            "cmake --toolchain x .",
        ],
    ),
    (
        "man:*",
        "man ls",
        &[
            "man -P ./x ls",
            "man --pager=./x ls",
            "man -H./x ls",
            "man -C x ls",
            "man -l x",
        ],
    ),
    (
        "less:*",
        "less x",
        &[
            "less +!x y",
            "less -O x y",
            "less --lesskey-src=x y",
            "less -k x y",
            "less --lesskey-content=x y",
        ],
    ),
    (
        "rsync:*",
        "rsync -a x y",
        &[
            "rsync -e ./x y z",
            "rsync --rsh=./x y z",
            "rsync --rsync-path=./x y z",
            "rsync --log-file=x y z",
        ],
    ),
    (
        "zip:*",
        "zip x y",
        &[
            "zip x y -T",
            "zip x y -TT ./x",
            "zip x y --unzip-command ./x",
            "zip -T x y",
        ],
    ),
    (
        "prettier:*",
        "prettier --check src",
        &["prettier --plugin=./x src", "prettier --config x src"],
    ),
    (
        "jest:*",
        "jest src",
        &[
            "jest --config x",
            "jest --globalSetup ./x",
            "jest --runner ./x",
            "jest --rootDir /x",
        ],
    ),
    (
        "mypy:*",
        "mypy src",
        &[
            "mypy --config-file x src",
            "mypy --python-executable ./x src",
            "mypy --install-types src",
            "mypy --junit-xml x src",
        ],
    ),
    (
        "ruff:*",
        "ruff check src",
        &[
            "ruff check --config x src",
            "ruff check -o x src",
            "ruff check --output-file=x src",
        ],
    ),
    (
        "curl:*",
        "curl https://x",
        &[
            "curl -K x",
            "curl --config x",
            "curl -o x y",
            "curl -sSLo x y",
            "curl -T x y",
            "curl -d @x y",
            "curl --engine x y",
            "curl --trace x y",
            "curl -c x y",
        ],
    ),
    (
        "wget:*",
        "wget -q https://x",
        &[
            "wget --use-askpass=./x y",
            "wget -e use_askpass=./x y",
            "wget -O x y",
            "wget --post-file=x y",
            "wget -i x",
            "wget --config=x y",
        ],
    ),
    (
        "openssl:*",
        "openssl version",
        &[
            "openssl engine ./x",
            "openssl req -engine ./x",
            "openssl enc -in x -out y",
            "openssl req -config x",
        ],
    ),
    (
        "jq:*",
        "jq . x",
        &[
            "jq -L x . y",
            "jq -f x y",
            "jq --rawfile a x . y",
            "jq --from-file x y",
        ],
    ),
    (
        "tar:*",
        "tar -tf x",
        &[
            "tar --checkpoint=1 -cf x y",
            "tar --rsh-command=./x -cf h:x y",
            "tar -T x -cf y",
            "tar --rmt-com ./x -cf h:x y",
        ],
    ),
    (
        "find:*",
        "find . -name x",
        &["find . -files0-from x", "find . -okdir ./x", "find . -fprint0 x"],
    ),
    // openai/codex pull request 7728: base64 writes a file on some systems.
    (
        "base64:*",
        "base64 -d x",
        &["base64 -d -o y x", "base64 --output=y x"],
    ),
    ("nm:*", "nm x", &["nm --plugin ./x.so y", "nm @x"]),
    (
        "rustc:*",
        "rustc --version",
        &[
            "rustc -C linker=./x y.rs",
            "rustc -Clinker=./x y.rs",
            "rustc -o x y.rs",
            "rustc @x",
        ],
    ),
    (
        "psql:*",
        "psql -l",
        &["psql -c x", "psql --command=x", "psql -o x", "psql -f x"],
    ),
    ("gh:*", "gh pr list", &["gh pr list --web", "gh api -F a=@x y"]),
    (
        "gpg:*",
        "gpg --list-keys",
        &[
            "gpg --agent-program ./x -k",
            "gpg --photo-viewer ./x -k",
            "gpg -o x y",
        ],
    ),
];

#[test]
fn i7_redteam_a_prefix_rule_covers_no_option_that_runs_writes_or_loads() {
    for (rule, harmless, attacks) in ROWS {
        check(rule, harmless, attacks);
    }
}

#[test]
fn i7_redteam_programs_that_are_there_to_run_others_need_an_exact_rule() {
    // GTFOBins; `java` for CVE-free ways in: -javaagent, -agentlib, -XX:OnError.
    for program in [
        "awk", "vim", "xargs", "ssh", "java", "screen", "tmux", "socat", "scp", "m4", "crontab", "env",
        "sed", "gdb", "nohup",
    ] {
        let argv: Vec<String> = [program, "x", "y"].map(str::to_owned).to_vec();
        assert_eq!(danger(&argv), Some(Danger::Everything), "{program}");
    }
    for (argv, at) in [
        ("ruby -rx y", 2),
        ("perl -Mx y", 2),
        ("docker run x", 1),
        ("kubectl exec x", 1),
        ("gradle x", 1),
        ("Rscript x", 1),
    ] {
        let argv: Vec<String> = argv.split(' ').map(str::to_owned).collect();
        assert_eq!(danger(&argv), Some(Danger::Word(at)), "{argv:?}");
    }
}
