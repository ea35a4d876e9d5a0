//! The built-in permission rules. The shipped configuration file lists them; a test compares the two.

use crate::rules::{RuleConfig, RuleExamples};
use agentd_protocol::VerdictKind;

/// A rule, calls that it must match, and calls that it must not match.
type Row = (&'static str, &'static [&'static str], &'static [&'static str]);

const DENY: &[Row] = &[
    // Commands that destroy data, take over the machine, or reach the network.
    (
        "Bash(rm -rf:*)",
        &["rm -rf /", "ls && rm -fr x"],
        &["rm x", "rm -r x"],
    ),
    ("Bash(rm -Rf:*)", &["rm -Rf /"], &["rm -R x"]),
    (
        "Bash(rm --recursive --force:*)",
        &["rm --recursive --force x"],
        &["rm --recursive x"],
    ),
    ("Bash(rm -r --force:*)", &["rm -r --force x"], &["rm --force x"]),
    (
        "Bash(rm -f --recursive:*)",
        &["rm -f --recursive x"],
        &["rm -f x"],
    ),
    ("Bash(sudo:*)", &["sudo ls", "env A=b sudo ls"], &["man sudo"]),
    ("Bash(doas:*)", &["doas ls"], &["man doas"]),
    ("Bash(su:*)", &["su", "su - root"], &["ls su"]),
    (
        "Bash(mkfs*:*)",
        &["mkfs.ext4 /dev/sda1", "mkfs /dev/sda1"],
        &["ls mkfs"],
    ),
    ("Bash(fdisk:*)", &["fdisk -l"], &["man fdisk"]),
    ("Bash(shutdown:*)", &["shutdown -h now"], &["echo shutdown"]),
    ("Bash(reboot:*)", &["reboot"], &["echo reboot"]),
    ("Bash(poweroff:*)", &["poweroff"], &["echo poweroff"]),
    ("Bash(halt:*)", &["halt -f"], &["echo halt"]),
    (
        "Bash(curl:*)",
        &["curl https://x", "ls | xargs curl"],
        &["git commit -m 'use curl less'"],
    ),
    ("Bash(wget:*)", &["wget -q x"], &["man wget"]),
    ("Bash(nc:*)", &["nc -l 80"], &["ls nc"]),
    ("Bash(ncat:*)", &["ncat x 80"], &["ls ncat"]),
    ("Bash(netcat:*)", &["netcat x 80"], &["ls netcat"]),
    ("Bash(telnet:*)", &["telnet x"], &["man telnet"]),
    ("Bash(ftp:*)", &["ftp x"], &["ls ftp"]),
    ("Bash(invoke-webrequest:*)", &["invoke-webrequest x"], &["echo x"]),
    ("Bash(irm:*)", &["irm x"], &["ls irm"]),
    ("Bash(del /f:*)", &["del /f x"], &["del x"]),
    ("Bash(format *:)", &["format c:"], &["cargo fmt"]),
    // Places that no agent needs to write to.
    ("Write(/etc/**)", &["/etc/x", "../etc/x/y"], &["etc/x", "/etcs/x"]),
    ("Write(/usr/**)", &["/usr/x", "../usr/x/y"], &["usr/x", "/usrs/x"]),
    ("Write(/bin/**)", &["/bin/x", "../bin/x/y"], &["bin/x", "/bins/x"]),
    (
        "Write(/sbin/**)",
        &["/sbin/x", "../sbin/x/y"],
        &["sbin/x", "/sbins/x"],
    ),
    ("Write(/lib*/**)", &["/lib/x", "/lib64/x"], &["lib/x"]),
    (
        "Write(/boot/**)",
        &["/boot/x", "../boot/x/y"],
        &["boot/x", "/boots/x"],
    ),
    ("Write(/dev/**)", &["/dev/x", "../dev/x/y"], &["dev/x", "/devs/x"]),
    (
        "Write(/proc/**)",
        &["/proc/x", "../proc/x/y"],
        &["proc/x", "/procs/x"],
    ),
    ("Write(/sys/**)", &["/sys/x", "../sys/x/y"], &["sys/x", "/syss/x"]),
    (
        "Write(/System/**)",
        &["/System/x", "../System/x/y"],
        &["System/x", "/Systems/x"],
    ),
    (
        "Write(**/.git/hooks/**)",
        &[".git/hooks/pre-commit", "sub/.git/hooks/x"],
        &[".githooks/x"],
    ),
    (
        "Write(**/.git/config)",
        &[".git/config", "sub/.git/config"],
        &["git/config"],
    ),
    (
        "Write(**/.git/commondir)",
        &[".git/commondir", "sub/.git/commondir"],
        &["git/commondir"],
    ),
    (
        "Write(~/.config/agentd/**)",
        &["~/.config/agentd/config.toml"],
        &["config/agentd/x"],
    ),
    // Files that hold credentials.
    ("Read(**/.env)", &[".env", "a/.env"], &[".environment", "env"]),
    ("Write(**/.env)", &[".env", "a/.env"], &[".environment", "env"]),
    (
        "Read(**/.env.{local,development,production,test})",
        &[".env.local", "a/.env.production"],
        &[".env.example"],
    ),
    (
        "Write(**/.env.{local,development,production,test})",
        &[".env.local", "a/.env.production"],
        &[".env.example"],
    ),
    (
        "Read(**/{credential,credentials,secret,secrets}.json)",
        &["credentials.json", "a/secret.json"],
        &["package.json"],
    ),
    (
        "Write(**/{credential,credentials,secret,secrets}.json)",
        &["credentials.json", "a/secret.json"],
        &["package.json"],
    ),
    ("Read(**/.credentials)", &[".credentials"], &["credentials"]),
    ("Write(**/.credentials)", &[".credentials"], &["credentials"]),
    (
        "Read(**/*.{pem,key,p12,pfx})",
        &["server.pem", "tls/x.key"],
        &["keys.rs"],
    ),
    (
        "Write(**/*.{pem,key,p12,pfx})",
        &["server.pem", "tls/x.key"],
        &["keys.rs"],
    ),
    (
        "Read(**/id_{rsa,ed25519,ecdsa,dsa})",
        &["~/.ssh/id_rsa", "id_ed25519"],
        &["id_rsa.pub"],
    ),
    (
        "Write(**/id_{rsa,ed25519,ecdsa,dsa})",
        &["~/.ssh/id_rsa", "id_ed25519"],
        &["id_rsa.pub"],
    ),
    (
        "Read(**/.aws/credentials)",
        &["~/.aws/credentials"],
        &["aws/credentials"],
    ),
    (
        "Write(**/.aws/credentials)",
        &["~/.aws/credentials"],
        &["aws/credentials"],
    ),
    (
        "Read(**/{.htpasswd,.netrc})",
        &[".htpasswd", "~/.netrc"],
        &["netrc"],
    ),
    (
        "Write(**/{.htpasswd,.netrc})",
        &[".htpasswd", "~/.netrc"],
        &["netrc"],
    ),
];

const ASK: &[Row] = &[
    (
        "Read(**/{.bash_history,.zsh_history,.npmrc,.pypirc})",
        &["~/.bash_history", ".npmrc"],
        &["history"],
    ),
    (
        "Write(**/{.bash_history,.zsh_history,.npmrc,.pypirc})",
        &["~/.bash_history", ".npmrc"],
        &["history"],
    ),
    (
        "Write(**/*.{sqlite,sqlite3,db,log})",
        &["a.db", "logs/x.log"],
        &["log.rs"],
    ),
];

/// The built-in rules, denials first.
pub(crate) fn rules() -> Vec<RuleConfig> {
    let deny = DENY.iter().map(|row| rule(VerdictKind::Deny, row));
    let ask = ASK.iter().map(|row| rule(VerdictKind::Ask, row));
    deny.chain(ask).collect()
}

fn rule(kind: VerdictKind, (text, matches, no_match): &Row) -> RuleConfig {
    let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    RuleConfig {
        examples: RuleExamples {
            matches: owned(matches),
            no_match: owned(no_match),
        },
        ..RuleConfig::new(kind, text)
    }
}
