//! The rules that come with agentd. The shipped file shows them; a test keeps the two equal.

use crate::rules::RuleConfig;
use agentd_protocol::VerdictKind;

const DENY: &[&str] = &[
    // Commands that destroy, take over the machine, or reach the network.
    "Bash(rm -rf:*)",
    "Bash(rm -Rf:*)",
    "Bash(rm --recursive --force:*)",
    "Bash(rm -r --force:*)",
    "Bash(rm -f --recursive:*)",
    "Bash(sudo:*)",
    "Bash(doas:*)",
    "Bash(su:*)",
    "Bash(mkfs*:*)",
    "Bash(fdisk:*)",
    "Bash(shutdown:*)",
    "Bash(reboot:*)",
    "Bash(poweroff:*)",
    "Bash(halt:*)",
    "Bash(curl:*)",
    "Bash(wget:*)",
    "Bash(nc:*)",
    "Bash(ncat:*)",
    "Bash(netcat:*)",
    "Bash(telnet:*)",
    "Bash(ftp:*)",
    "Bash(invoke-webrequest:*)",
    "Bash(irm:*)",
    "Bash(del /f:*)",
    "Bash(format *:)",
    // Places that no agent has to write to.
    "Write(/etc/**)",
    "Write(/usr/**)",
    "Write(/bin/**)",
    "Write(/sbin/**)",
    "Write(/lib*/**)",
    "Write(/boot/**)",
    "Write(/dev/**)",
    "Write(/proc/**)",
    "Write(/sys/**)",
    "Write(/System/**)",
    "Write(**/.git/hooks/**)",
    "Write(**/.git/config)",
    "Write(~/.config/agentd/**)",
    // Files that hold credentials.
    "Read(**/.env)",
    "Write(**/.env)",
    "Read(**/.env.{local,development,production,test})",
    "Write(**/.env.{local,development,production,test})",
    "Read(**/{credential,credentials,secret,secrets}.json)",
    "Write(**/{credential,credentials,secret,secrets}.json)",
    "Read(**/.credentials)",
    "Write(**/.credentials)",
    "Read(**/*.{pem,key,p12,pfx})",
    "Write(**/*.{pem,key,p12,pfx})",
    "Read(**/id_{rsa,ed25519,ecdsa,dsa})",
    "Write(**/id_{rsa,ed25519,ecdsa,dsa})",
    "Read(**/.aws/credentials)",
    "Write(**/.aws/credentials)",
    "Read(**/{.htpasswd,.netrc})",
    "Write(**/{.htpasswd,.netrc})",
];

const ASK: &[&str] = &[
    "Read(**/{.bash_history,.zsh_history,.npmrc,.pypirc})",
    "Write(**/{.bash_history,.zsh_history,.npmrc,.pypirc})",
    "Write(**/*.{sqlite,sqlite3,db,log})",
];

/// The built-in rules, denials first.
pub(crate) fn rules() -> Vec<RuleConfig> {
    let deny = DENY.iter().map(|rule| RuleConfig::new(VerdictKind::Deny, rule));
    let ask = ASK.iter().map(|rule| RuleConfig::new(VerdictKind::Ask, rule));
    deny.chain(ask).collect()
}
