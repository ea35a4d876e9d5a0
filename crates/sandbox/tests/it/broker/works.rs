//! What commands do with files, by name. Each script fails if one of its steps fails.

pub(super) const SCRIPTS: &[(&str, &str)] = &[
    (
        "make and remove",
        "mkdir -p a/b/c && touch a/b/c/f && rm a/b/c/f && rmdir a/b/c && rm -r a && test ! -e a",
    ),
    (
        "move",
        "mkdir d && echo x > d/f && mv d e && mv e/f g && test \"$(cat g)\" = x",
    ),
    (
        "move over",
        "echo 1 > a && echo 2 > b && mv a b && test \"$(cat b)\" = 1",
    ),
    (
        "link",
        "echo x > f && ln f g && ln -s f h && ln -s nowhere i && echo y > i && test \"$(cat g h nowhere)\" = $'x\\nx\\ny'",
    ),
    (
        "append and empty",
        "echo a > f && echo b >> f && : > f && echo c >> f && test \"$(cat f)\" = c",
    ),
    (
        "truncate",
        "echo abc > f && perl -e 'truncate(\"f\", 2) or die' && test \"$(cat f)\" = ab",
    ),
    (
        "mode",
        "touch f && chmod 751 f && test $(stat -c %a f) = 751 && chmod -R u+x . && mkdir -m 1750 s && test $(stat -c %a s) = 1750",
    ),
    (
        "mask",
        "umask 027 && touch f && mkdir d && test $(stat -c %a f)$(stat -c %a d) = 640750 && umask 0 && touch g && test $(stat -c %a g) = 666",
    ),
    (
        "times",
        "touch -d @1000 f && test $(stat -c %Y f) = 1000 && ln -s f l && touch -hd @2000 l && test $(stat -c %Y f)$(stat -c %Y l) = 10002000 && perl -e 'utime(5, 6, \"f\") or die' && test $(stat -c %X%Y f) = 56 && touch f && test $(stat -c %Y f) -gt 9999 && touch .",
    ),
    (
        "owner",
        "touch f && chown $(id -u):$(id -g) f && chown -h $(id -u) f",
    ),
    (
        "copy with everything",
        "mkdir a && echo x > a/f && chmod 710 a/f && touch -d @77 a/f && cp -a a b && test $(stat -c %a%Y b/f) = 71077",
    ),
    (
        "archive",
        "mkdir a && echo x > a/f && ln -s f a/l && tar cf t.tar a && rm -r a && tar xpf t.tar && test \"$(cat a/l)\" = x",
    ),
    (
        "pipe",
        "mkfifo p && (cat p > got &) && echo through > p && for i in $(seq 1000); do test -s got && break; done; test -p p",
    ),
    (
        "substitution",
        "test \"$(diff <(echo a) <(echo a) && echo same)\" = same && echo x | tee >(cat > /dev/null) > /dev/null",
    ),
    (
        "own descriptors",
        "echo x > /dev/null && echo y > /dev/stderr && echo z > /dev/stdout && exec 5> f && echo w > /proc/self/fd/5 && echo v >> /dev/fd/5 && test \"$(cat f)\" = $'w\\nv'",
    ),
    (
        "temporary",
        "f=$(mktemp) && echo x > $f && d=$(mktemp -d) && mv $f $d/g && mkdir $d/.vscode && mv $d/g here && test -s here",
    ),
    (
        "a directory from outside of the guarded",
        "mkdir -p $TMPDIR/d/e && echo x > $TMPDIR/d/e/f && mv $TMPDIR/d here && test \"$(cat here/e/f)\" = x && test ! -e $TMPDIR/d",
    ),
    (
        "a directory from an exception",
        "mkdir -p target/d && touch target/d/f && mv target/d e && test -e e/f",
    ),
    (
        "hidden names that are data",
        "touch .gitkeep .gitignore && mkdir -p node_modules/.bin .cache && touch node_modules/.bin/x .cache/.y && rm -r node_modules .cache .gitignore",
    ),
    (
        "long names and dots",
        "n=$(printf 'n%.0s' $(seq 250)) && mkdir $n && touch $n/../$n/./f && cd $n && touch ../g && rm f && cd .. && rmdir $n/",
    ),
    (
        "unnamed file",
        "perl -e 'sysopen(F, \".\", 020200000|2, 0600) or die; print F \"x\"; close F'",
    ),
    (
        "compile",
        "! type gcc > /dev/null || { printf 'int main(){return 0;}' > m.c && gcc -o m m.c && ./m; }",
    ),
];
