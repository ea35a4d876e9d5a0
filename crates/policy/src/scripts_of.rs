//! Scripts of sed and awk that can be seen to run nothing.

const AWK: [&str; 4] = ["awk", "gawk", "mawk", "nawk"];
const SED: [&str; 2] = ["sed", "gsed"];
/// Options of sed without a value that only change how it prints and matches.
const PLAIN: [&str; 10] = [
    "-n",
    "-E",
    "-r",
    "-s",
    "-z",
    "-u",
    "--quiet",
    "--silent",
    "--regexp-extended",
    "--null-data",
];

/// Whether a program's first operand is a script.
pub(crate) fn takes_script(program: &str) -> bool {
    AWK.contains(&program) || SED.contains(&program)
}

/// Whether it is sed or awk with a script that has none of the means to run something.
pub(crate) fn runs_nothing(program: &str, args: &[String]) -> bool {
    if AWK.contains(&program) {
        return args.iter().all(is_inert_awk);
    }
    SED.contains(&program) && sed_scripts(args).is_some_and(|scripts| scripts.into_iter().all(is_inert_sed))
}

/// Neither an option that loads code, nor a function, a pipe or an indirect call in the script.
fn is_inert_awk(arg: &String) -> bool {
    let option = arg.starts_with('-') && !arg.starts_with("-F") && !arg.starts_with("-v") && arg != "--";
    let text = arg.replace("||", "");
    !option && !text.contains("system") && !text.contains(['|', '@'])
}

/// The scripts among the arguments of sed; `None` when an option is not plain.
fn sed_scripts(args: &[String]) -> Option<Vec<&str>> {
    let mut scripts: Vec<&str> = Vec::new();
    let mut operand: Option<&str> = None;
    let mut args = args.iter().map(String::as_str);
    while let Some(arg) = args.next() {
        match arg {
            "-e" | "--expression" => scripts.push(args.next()?),
            _ if PLAIN.contains(&arg) || arg.starts_with("-i") || arg.starts_with("--in-place") => {}
            _ if arg.starts_with('-') && arg.len() > 1 => {
                let (letters, script) = arg.trim_start_matches('-').split_once('e')?;
                if arg.starts_with("--") || !letters.chars().all(|c| "nErszui".contains(c)) {
                    return None;
                }
                scripts.push(if script.is_empty() { args.next()? } else { script });
            }
            _ => operand = operand.or(Some(arg)),
        }
    }
    if scripts.is_empty() {
        scripts.extend(operand);
    }
    Some(scripts)
}

/// Whether a script of sed has only commands that edit and print.
fn is_inert_sed(script: &str) -> bool {
    let mut rest = script;
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_whitespace() || ";{}".contains(c));
        let Some(behind) = address(rest) else { return false };
        rest = behind;
        let Some(command) = rest.chars().next() else {
            return true;
        };
        let behind = rest.get(command.len_utf8()..).unwrap_or_default();
        let next = match command {
            's' => substitution(behind),
            'y' => sections(behind),
            'd' | 'D' | 'p' | 'P' | 'n' | 'N' | 'g' | 'G' | 'h' | 'H' | 'x' | '=' | '{' | '}' => Some(behind),
            'q' | 'Q' | 'l' => Some(behind.trim_start_matches(|c: char| c.is_ascii_digit())),
            'a' | 'i' | 'c' | '#' => Some(line(behind)),
            'b' | 't' | ':' => Some(behind.trim_start_matches(|c: char| c != ';' && c != '\n' && c != '}')),
            _ => None,
        };
        let Some(next) = next else { return false };
        rest = next;
    }
}

/// The text behind an address.
fn address(mut rest: &str) -> Option<&str> {
    loop {
        let plain = |c: char| c.is_ascii_digit() || "$,!+~ ".contains(c);
        rest = rest.trim_start_matches(plain);
        match rest.strip_prefix('/') {
            Some(pattern) => rest = section(pattern, '/')?.trim_start_matches(['I', 'M']),
            None => return Some(rest),
        }
    }
}

fn substitution(text: &str) -> Option<&str> {
    let behind = sections(text)?;
    let flags = |c: char| c.is_ascii_digit() || "gpiIm".contains(c);
    let behind = behind.trim_start_matches(flags);
    behind
        .chars()
        .next()
        .is_none_or(|c| c.is_whitespace() || ";}#".contains(c))
        .then_some(behind)
}

/// The text behind two sections with the same delimiter.
fn sections(text: &str) -> Option<&str> {
    let delimiter = text
        .chars()
        .next()
        .filter(|c| !c.is_alphanumeric() && !"\\\n _".contains(*c))?;
    let first = section(text.get(delimiter.len_utf8()..)?, delimiter)?;
    section(first, delimiter)
}

/// The text behind the next delimiter that is not escaped.
fn section(text: &str, delimiter: char) -> Option<&str> {
    let mut escaped = false;
    let (mut at, mut chars) = (0, text.chars());
    loop {
        let c = chars.next()?;
        at += c.len_utf8();
        if c == delimiter && !escaped {
            return text.get(at..);
        }
        escaped = c == '\\' && !escaped;
    }
}

/// The text behind the line, which an escaped line break continues.
fn line(mut text: &str) -> &str {
    while let Some((line, behind)) = text.split_once('\n') {
        text = behind;
        if !line.ends_with('\\') {
            return text;
        }
    }
    ""
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inert(command: &[&str]) -> bool {
        let args: Vec<String> = command.iter().skip(1).map(|word| (*word).to_owned()).collect();
        runs_nothing(command.first().unwrap(), &args)
    }

    #[test]
    fn a_script_that_only_edits_and_prints_is_inert() {
        for script in [
            "s/curl/wget/g",
            "s|curl|wget|;p",
            "/curl/d",
            "1,5p",
            "$!N; s/a\\/b/c/2p",
            "/a/,/b/{s/x/y/;d}",
            "/x/a curl is here",
            "y/abc/xyz/",
            "3q",
            ":a;N;$!ba;s/\\n/ /g",
        ] {
            assert!(inert(&["sed", "-i.bak", "-E", "-e", script, "file"]), "{script}");
            assert!(inert(&["sed", "-n", script, "file"]), "{script}");
            assert!(inert(&["sed", "-ne", script, "file"]), "{script}");
        }
        assert!(inert(&[
            "awk",
            "-F:",
            "/curl/ || $1 == \"curl\" { print $2 }",
            "f"
        ]));
    }

    #[test]
    fn i7_a_script_that_may_run_something_is_not() {
        for script in [
            "e curl x",
            "1e curl x",
            "s/x/curl y/e",
            "s/x/y/ge",
            "s/x/y/;e curl",
            "/a/e curl",
            "{e curl\n}",
            "s,x,y,w f",
            "w f",
            "r f",
            "\\_x_e curl",
            "sxaxbxe",
            "s/x/y",
            "a hi\ne curl",
            "s_x_curl y_e",
            "N;e",
        ] {
            assert!(!inert(&["sed", script, "file"]), "{script}");
        }
        assert!(!inert(&["sed", "-f", "x", "file"]));
        assert!(!inert(&["sed", "p", "-e", "e curl"]));
        assert!(!inert(&["sed", "--file=x"]));
        for script in [
            "BEGIN{system(\"curl x\")}",
            "{print | \"curl x\"}",
            "{\"curl\" | getline}",
            "@load \"x\"",
            "{f=\"sys\" \"tem\"; @f(\"curl\")}",
        ] {
            assert!(!inert(&["awk", script]), "{script}");
        }
        assert!(!inert(&["awk", "-f", "x"]) && !inert(&["gawk", "--load=x", "1"]));
    }
}
