//! Checks external input. Each fault names the field, the error and the valid form.

use crate::prompting::reading;
use agentd_protocol::{Block, Budget, Fault, ImageSource, Labels, MAX_LABEL_KEY, label_word};
use agentd_settings::{Settings, ToolsConfig};
use agentd_tools::check_image;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::path::{Component, Path};

/// The maximum bytes of all images in one input: as Base64, they and the text stay below the 8 MiB of a frame.
const MAX_IMAGE_BYTES: usize = 4 << 20;
const MAX_LABELS: usize = 64;
const MAX_LABEL_VALUE: usize = 253;
const MAX_TITLE: usize = 200;
const MAX_RULES: usize = 256;

/// Checks an input to a model: text up to `limits.max_input_bytes`, and images that providers accept.
pub(crate) fn content(blocks: &[Block], settings: &Settings) -> Result<(), Fault> {
    let max_bytes = settings.limits.max_input_bytes;
    let (mut bytes, mut image_bytes) = (0, 0);
    let mut said = false;
    for block in blocks {
        let length = match block {
            Block::Text { text } => {
                said |= !text.trim().is_empty();
                text.len()
            }
            Block::Image {
                media_type,
                source: ImageSource::Data(data),
            } => {
                said = true;
                image_bytes += image(media_type, data, &settings.tools)?;
                0
            }
            Block::Image {
                source: ImageSource::Blob(_),
                ..
            }
            | Block::Thinking { .. }
            | Block::ToolUse { .. }
            | Block::ToolResult { .. }
            | Block::Unknown => {
                return Err(Fault::invalid(
                    "bad_content",
                    "an input can contain only text and inline images",
                ));
            }
        };
        bytes += u64::try_from(length).unwrap_or(u64::MAX);
    }
    if bytes > max_bytes {
        return Err(Fault::limit(
            "input_too_large",
            format!("the input has {bytes} bytes, the limit is {max_bytes}"),
        )
        .hint("put long material into a file in the working directory and name the file"));
    }
    room_for_images(image_bytes)?;
    if !said {
        return Err(Fault::invalid("empty_input", "the input is empty").hint("say what the agent should do"));
    }
    Ok(())
}

/// Checks an inline image and returns its size. One that a provider refuses would invalidate the whole conversation.
fn image(media_type: &str, data: &str, limits: &ToolsConfig) -> Result<usize, Fault> {
    let bad = |why: String| {
        Fault::invalid("bad_image", why)
            .hint("send a PNG, JPEG, GIF or WebP image in base64; scale a large one down")
    };
    let bytes = STANDARD
        .decode(data)
        .map_err(|error| bad(format!("the data of an image is not base64: {error}")))?;
    match check_image(&bytes, limits) {
        Ok((found, _, _)) if found == media_type => Ok(bytes.len()),
        Ok((found, _, _)) => Err(bad(format!(
            "an image has the media type {:?}, but it is {found}",
            crate::words::cut(media_type)
        ))),
        Err(error) => Err(bad(format!("an image of the input {error}"))),
    }
}

/// Whether the images of one input fit into a frame together.
pub(crate) fn room_for_images(bytes: usize) -> Result<(), Fault> {
    if bytes <= MAX_IMAGE_BYTES {
        return Ok(());
    }
    let message =
        format!("the images of the input have {bytes} bytes in total, the limit is {MAX_IMAGE_BYTES}");
    Err(Fault::limit("input_too_large", message).hint("send fewer images at once, or scale them down"))
}

/// Checks a title.
pub(crate) fn title(title: &str) -> Result<String, Fault> {
    let title = title.trim();
    let fine =
        !title.is_empty() && title.chars().count() <= MAX_TITLE && !title.chars().any(char::is_control);
    if fine && !title.starts_with('@') {
        return Ok(title.to_owned());
    }
    let message =
        format!("a title must have 1 to {MAX_TITLE} printable characters and must not begin with @");
    Err(Fault::invalid("bad_title", message))
}

/// The title of a fork without a given one; `None` if the original session has none.
pub(crate) fn title_of_fork(title: &str) -> Option<String> {
    const END: &str = "-fork";
    let kept: String = title.chars().take(MAX_TITLE - END.len()).collect();
    (!kept.is_empty()).then(|| format!("{kept}{END}"))
}

/// The title of an imported session without a given one: it names the source.
pub(crate) fn title_of_import(source: &str) -> String {
    const BEGIN: &str = "imported";
    let kept = printable(source, MAX_TITLE - BEGIN.len() - 2);
    if kept.is_empty() {
        BEGIN.to_owned()
    } else {
        format!("{BEGIN}: {kept}")
    }
}

/// The beginning of a user's text without control characters.
pub(crate) fn printable(text: &str, chars: usize) -> String {
    let fine = text.trim().chars().filter(|c| !c.is_control());
    fine.take(chars).collect()
}

/// Checks that selectors can express the keys and values of labels.
pub(crate) fn labels(labels: &Labels) -> Result<(), Fault> {
    if labels.len() > MAX_LABELS {
        return Err(Fault::invalid(
            "too_many_labels",
            format!("a session can have at most {MAX_LABELS} labels"),
        ));
    }
    for (key, value) in labels {
        if !label_word(key) {
            let message = format!("the label key {:?} is not allowed", crate::words::cut(key));
            let hint = format!(
                "use 1 to {MAX_LABEL_KEY} of A-Z a-z 0-9 . _ - /, with a letter or digit at both ends"
            );
            return Err(Fault::invalid("bad_label", message).hint(hint));
        }
        let forbidden = |c: char| c.is_control() || matches!(c, ',' | '=');
        if value.len() > MAX_LABEL_VALUE || value.chars().any(forbidden) {
            let message = format!("the value of the label {key:?} is not allowed");
            let hint =
                format!("use at most {MAX_LABEL_VALUE} bytes, without control characters, comma and =");
            return Err(Fault::invalid("bad_label", message).hint(hint));
        }
    }
    Ok(())
}

/// Checks the labels that a session requires of its node. The store compares them as text, so that the values are as plain as
/// the keys.
pub(crate) fn requires(labels: &Labels) -> Result<(), Fault> {
    self::labels(labels)?;
    match labels.values().find(|value| !label_word(value)) {
        None => Ok(()),
        Some(value) => {
            let message = format!(
                "requires: the value {:?} is not allowed",
                crate::words::cut(value)
            );
            let hint = "values follow the rules for keys: letters, digits and . _ - /, as in gpu=yes";
            Err(Fault::invalid("bad_label", message).hint(hint))
        }
    }
}

/// Checks that the path is an absolute path of an existing directory.
pub(crate) async fn workdir(text: &str) -> Result<String, Fault> {
    let path = Path::new(text);
    if text.is_empty() || !path.is_absolute() || text.contains('\0') {
        return Err(Fault::invalid(
            "bad_workdir",
            format!("the working directory {text:?} is not an absolute path"),
        )
        .hint("give the full path, starting with /"));
    }
    if path.components().any(|part| matches!(part, Component::ParentDir)) {
        return Err(Fault::invalid(
            "bad_workdir",
            format!("the working directory {text:?} contains .."),
        )
        .hint("write the path without .."));
    }
    let tidy: std::path::PathBuf = path.components().collect();
    let dir = tidy.clone();
    let found = reading("the working directory", &tidy, move || std::fs::metadata(dir)).await?;
    let message = match found {
        Ok(found) if found.is_dir() => return real(tidy).await,
        Ok(_) => format!("the working directory {text:?} is not a directory"),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            format!("the working directory {text:?} does not exist")
        }
        Err(error) => format!("cannot read the working directory {text:?}: {error}"),
    };
    Err(Fault::invalid("bad_workdir", message).hint("create it, or name another one with -C DIR"))
}

/// Refuses a working directory in which no command could run: commands may write everything below it, so the sandbox does
/// not accept one that contains the daemon's own data.
pub(crate) async fn apart(workdir: &str, data_dir: &str) -> Result<(), Fault> {
    let data_dir = real(data_dir.into()).await?;
    if !Path::new(&data_dir).starts_with(workdir) {
        return Ok(());
    }
    let message = format!(
        "no command could run in {workdir}: it contains the daemon's data directory {data_dir}, and commands may \
         write everything in their working directory"
    );
    let hint = "name a directory below it with -C DIR, or start the daemon with its data elsewhere (agentd --data-dir DIR)";
    Err(Fault::invalid("bad_workdir", message).hint(hint))
}

/// The real path of a directory. A session stores it, so a link found in its place was put there later.
async fn real(dir: std::path::PathBuf) -> Result<String, Fault> {
    let failed = |why: String| {
        Fault::invalid("bad_workdir", format!("cannot open the working directory: {why}"))
            .hint("name another one with -C DIR")
    };
    let path = dir.clone();
    let open = move || agentd_tools::Beneath::open_anywhere(&path);
    let opened = reading("the working directory", &dir, open).await?;
    let opened = opened.map_err(|error| failed(error.to_string()))?;
    let text = opened.path().to_str().map(str::to_owned);
    text.ok_or_else(|| failed("its path is not UTF-8".to_owned()))
}

/// Checks that the numbers of a budget make sense.
pub(crate) fn budget(budget: &Budget) -> Result<(), Fault> {
    if budget.usd.is_finite() && budget.usd >= 0.0 {
        return Ok(());
    }
    Err(Fault::invalid(
        "bad_budget",
        "budget.usd must be 0 (no limit) or more",
    ))
}

/// Parses permission rules.
pub(crate) fn rules(rules: &[String]) -> Result<Vec<agentd_policy::Rule>, Fault> {
    if rules.len() > MAX_RULES {
        return Err(Fault::invalid(
            "too_many_rules",
            format!("a session can have at most {MAX_RULES} rules"),
        ));
    }
    let parsed = rules.iter().map(|rule| {
        agentd_policy::Rule::parse(rule, agentd_policy::Source::Session)
            .map_err(|error| Fault::invalid("bad_rule", error.to_string()))
    });
    parsed.collect()
}

/// A title made from the first line of an input.
pub(crate) fn title_from(blocks: &[Block]) -> Option<String> {
    const LONG: usize = 60;
    let text = blocks.iter().find_map(|block| match block {
        Block::Text { text } => text.lines().map(str::trim).find(|line| !line.is_empty()),
        _ => None,
    })?;
    let words = text
        .split(|c: char| c.is_whitespace() || c.is_control())
        .filter(|word| !word.is_empty());
    let line = words.collect::<Vec<_>>().join(" ");
    let line = line.trim_start_matches('@');
    let mut title: String = line.chars().take(LONG).collect();
    if line.chars().count() > LONG {
        let end = title
            .rfind(' ')
            .filter(|end| *end > LONG / 2)
            .unwrap_or(title.len());
        title.truncate(end);
        title.push('…');
    }
    (!title.is_empty()).then_some(title)
}
