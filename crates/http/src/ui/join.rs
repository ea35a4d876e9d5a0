//! Joins the files that the first view needs: each file of its own costs a browser milliseconds before the first paint.
//!
//! A joined module becomes a function that runs once, in the order of the imports, and returns what the module exports.
//! Its own file stays and exports the same objects, for modules that are loaded later.
//!
//! The page's modules keep to a part of the language that needs no parser: an import is one line with names in braces, an
//! export stands before a declaration, and a dynamic import is awaited where it is written. A file outside of that part
//! leaves the page unjoined, which works, too; a test sees that ours are joined.

use super::ASSETS;
use std::collections::HashMap;
use std::fmt::Write as _;

/// The files of the page by name, such as `js/dom.js`.
pub(super) type Files = HashMap<String, Vec<u8>>;

/// The names of the joined files.
pub(super) const STYLES: &str = "css/page.css";
pub(super) const MODULES: &str = "js/page.js";

/// Joins the style sheets of the page in their order.
pub(super) fn style_sheets(index: &str, files: &mut Files) -> String {
    let names: Vec<_> = index
        .lines()
        .filter_map(|line| asset(line, "rel=\"stylesheet\" href="))
        .collect();
    let sheet = names
        .iter()
        .filter_map(|name| files.remove(*name))
        .flatten()
        .collect();
    files.insert(STYLES.to_owned(), sheet);
    only(index, &names, STYLES)
}

/// Joins the modules that the page names, and those that they import. Asynchronous ones stay apart, as they do not wait.
pub(super) fn modules(index: &str, files: &mut Files) -> String {
    join_modules(index, files).unwrap_or_else(|| index.to_owned())
}

fn join_modules(index: &str, files: &mut Files) -> Option<String> {
    let all = |attribute| index.lines().filter_map(move |line| asset(line, attribute));
    let mut early = Joined::default();
    for name in all("type=\"module\" async src=") {
        early.visit(name, files)?;
    }
    let apart = early.modules.into_iter().map(|module| module.name);
    let mut joined = Joined {
        apart: apart.collect(),
        ..Joined::default()
    };
    let mut names: Vec<_> = all("rel=\"modulepreload\" href=")
        .chain(all("type=\"module\" src="))
        .collect();
    names.retain(|name| !joined.has(name));
    for name in &names {
        joined.visit(name, files)?;
    }
    let (text, stubs) = joined.write();
    files.extend(stubs);
    files.insert(MODULES.to_owned(), text.into_bytes());
    Some(only(index, &names, MODULES))
}

/// The file that a line of the page loads by this attribute.
fn asset<'a>(line: &'a str, attribute: &str) -> Option<&'a str> {
    let (_, rest) = line.split_once(&format!("{attribute}\"{ASSETS}/"))?;
    rest.split('"').next()
}

/// The page with `file` in the line that loads the last of `names`, and without the lines of the others.
fn only(index: &str, names: &[&str], file: &str) -> String {
    let Some((last, others)) = names.split_last() else {
        return index.to_owned();
    };
    let quoted = |name: &str| format!("\"{ASSETS}/{name}\"");
    let kept = |line: &&str| !others.iter().any(|name| line.contains(&quoted(name)));
    let lines: Vec<_> = index.lines().filter(kept).collect();
    lines.join("\n").replace(&quoted(last), &quoted(file))
}

/// Modules in an order in which each comes after those it imports.
#[derive(Default)]
struct Joined {
    /// Files of their own that run before these.
    apart: Vec<String>,
    modules: Vec<Module>,
    /// Those that were begun: an import of one that is not in `modules` yet is a cycle.
    begun: Vec<String>,
}

struct Module {
    name: String,
    body: String,
    exports: Vec<String>,
}

impl Joined {
    /// Adds a module after its imports.
    ///
    /// Returns `None` if a file is missing or outside of what this understands.
    fn visit(&mut self, name: &str, files: &Files) -> Option<()> {
        if self.has(name) {
            return Some(());
        }
        if self.begun.iter().any(|begun| begun == name) {
            return None;
        }
        self.begun.push(name.to_owned());
        let source = std::str::from_utf8(files.get(name)?).ok()?;
        let mut module = Module {
            name: name.to_owned(),
            body: String::new(),
            exports: Vec::new(),
        };
        for line in source.lines() {
            let line = self.line(line, &mut module, files)?;
            module.body.push_str(&line);
            module.body.push('\n');
        }
        self.modules.push(module);
        Some(())
    }

    fn has(&self, name: &str) -> bool {
        self.apart.iter().any(|apart| apart == name) || self.modules.iter().any(|module| module.name == name)
    }

    fn line(&mut self, line: &str, module: &mut Module, files: &Files) -> Option<String> {
        if let Some(rest) = line.strip_prefix("import ") {
            let (names, from) = rest.strip_suffix("';")?.split_once(" from '")?;
            let from = resolve(&module.name, from)?;
            self.visit(&from, files)?;
            return Some(format!(
                "const {} = modules['{from}'];",
                names.replace(" as ", ": ")
            ));
        }
        if let Some(declaration) = line.strip_prefix("export ") {
            let plain = declaration.strip_prefix("async ").unwrap_or(declaration);
            let (_, rest) = ["const ", "function ", "class "]
                .iter()
                .find_map(|kind| plain.strip_prefix(kind).map(|rest| (kind, rest)))?;
            let end = rest
                .find(|c: char| !c.is_alphanumeric() && c != '_')
                .unwrap_or(rest.len());
            module.exports.push(rest.get(..end)?.to_owned());
            return Some(declaration.to_owned());
        }
        Some(line.to_owned())
    }

    /// The joined file, and what the modules' own files become.
    fn write(self) -> (String, Files) {
        let mut text = "export const modules = {};\n".to_owned();
        // Writing to a string does not fail.
        for (n, name) in self.apart.iter().enumerate() {
            let _ = writeln!(
                text,
                "import * as apart{n} from '../{name}';\nmodules['{name}'] = apart{n};"
            );
        }
        let mut stubs = Files::new();
        for Module { name, body, exports } in &self.modules {
            let body = self.dynamic_imports(name, body);
            let exports = exports.join(", ");
            // Writing to a string does not fail.
            let _ = write!(
                text,
                "modules['{name}'] = (() => {{\n{body}return {{ {exports} }};\n}})();\n"
            );
            let up = "../".repeat(name.matches('/').count());
            let stub = format!(
                "import {{ modules }} from '{up}{MODULES}';\nexport const {{ {exports} }} = modules['{name}'];\n"
            );
            stubs.insert(name.clone(), stub.into_bytes());
        }
        (text, stubs)
    }

    /// `await import(...)` of a joined module needs no file; the paths of others are now relative to the joined file.
    fn dynamic_imports(&self, name: &str, body: &str) -> String {
        const IMPORT: &str = "await import('";
        let mut parts = body.split(IMPORT);
        let mut written = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let found = part
                .split_once("')")
                .and_then(|(path, rest)| Some((resolve(name, path)?, rest)));
            match found {
                Some((path, rest)) if self.has(&path) => written += &format!("modules['{path}']{rest}"),
                Some((path, rest)) => written += &format!("{IMPORT}../{path}'){rest}"),
                None => written += &format!("{IMPORT}{part}"),
            }
        }
        written
    }
}

/// The name of the file that `from` means within `module`.
fn resolve(module: &str, from: &str) -> Option<String> {
    let mut folders: Vec<_> = module.split('/').collect();
    folders.pop();
    for part in from.split('/') {
        match part {
            "." => (),
            ".." => folders.pop().map(|_| ())?,
            part => folders.push(part),
        }
    }
    Some(folders.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(all: &[(&str, &str)]) -> Files {
        all.iter()
            .map(|(name, text)| ((*name).to_owned(), text.as_bytes().to_vec()))
            .collect()
    }

    fn text(files: &Files, name: &str) -> String {
        String::from_utf8_lossy(files.get(name).map_or(&[], |bytes| bytes)).into_owned()
    }

    const INDEX: &str = "<script type=\"module\" async src=\"@assets/js/early.js\"></script>\n\
                         <link rel=\"modulepreload\" href=\"@assets/js/views/first.js\">\n\
                         <script type=\"module\" src=\"@assets/js/main.js\"></script>";

    #[test]
    fn modules_run_after_their_imports_and_keep_their_files() {
        let mut all = files(&[
            (
                "js/main.js",
                "import { b as c } from './b.js';\nconst view = await import('./views/first.js');\nconst other = await import('./views/other.js');\n",
            ),
            ("js/early.js", "export const first = 1;\n"),
            (
                "js/b.js",
                "import { first } from './early.js';\nexport const b = first;\nexport async function bb() {}\n",
            ),
            (
                "js/views/first.js",
                "import { b, bb } from '../b.js';\nexport class First {}\n",
            ),
            ("js/views/other.js", "import { b } from '../b.js';\n"),
        ]);
        let index = modules(INDEX, &mut all);
        let main = "<script type=\"module\" src=\"@assets/js/page.js\"></script>";
        assert_eq!(index.lines().skip(1).collect::<Vec<_>>(), [main]);
        assert_eq!(
            text(&all, MODULES),
            "export const modules = {};\nimport * as apart0 from '../js/early.js';\nmodules['js/early.js'] = apart0;\n\
             modules['js/b.js'] = (() => {\nconst { first } = modules['js/early.js'];\nconst b = first;\nasync function bb() {}\nreturn { b, bb };\n})();\n\
             modules['js/views/first.js'] = (() => {\nconst { b, bb } = modules['js/b.js'];\nclass First {}\nreturn { First };\n})();\n\
             modules['js/main.js'] = (() => {\nconst { b: c } = modules['js/b.js'];\nconst view = modules['js/views/first.js'];\n\
             const other = await import('../js/views/other.js');\nreturn {  };\n})();\n",
        );
        assert_eq!(
            text(&all, "js/views/first.js"),
            "import { modules } from '../../js/page.js';\nexport const { First } = modules['js/views/first.js'];\n",
        );
        assert_eq!(
            text(&all, "js/views/other.js"),
            "import { b } from '../b.js';\n",
            "not of the first view"
        );
    }

    #[test]
    fn what_is_not_understood_leaves_the_page_as_it_is() {
        let cases = [
            ("a missing file", "import { x } from './gone.js';\n"),
            ("a cycle", "import { x } from './main.js';\n"),
            ("an export by name", "const x = 1;\nexport { x };\n"),
            ("an import of several lines", "import {\n  x,\n} from './b.js';\n"),
            ("a path out of the page", "import { x } from '../../../x.js';\n"),
        ];
        for (what, main) in cases {
            let mut all = files(&[
                ("js/main.js", main),
                ("js/early.js", ""),
                ("js/views/first.js", ""),
                ("js/b.js", ""),
            ]);
            let before = all.clone();
            assert_eq!(modules(INDEX, &mut all), INDEX, "{what}");
            assert_eq!(all, before, "{what}");
        }
    }
}
