//! Files that a typed input mentions: attaches those that the rules let an agent read, and leaves out those they forbid.

use crate::api::{Api, READ, fault_of};
use crate::prompting::reading;
use crate::validate;
use crate::words::cut;
use agentd_actor_kit::{GateMsg, JudgeRequest};
use agentd_policy::{Here, Subject};
use agentd_prompt::{AttachLimits, Attached, MentionedPath, attached, mentions, outside_mentions, places_of};
use agentd_protocol::{Block, EffectClass, Fault, ImageSource, PermissionMode, SessionId, VerdictKind};
use agentd_tools::check_image;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::path::{Path, PathBuf};

/// The author of an input and the session it goes to.
#[derive(Debug, Clone)]
pub(crate) struct Speaker {
    pub(crate) session: SessionId,
    pub(crate) workdir: String,
    pub(crate) mode: PermissionMode,
    pub(crate) rules: Vec<String>,
    /// Whether a person wrote the text; the text of a command file may come from anyone.
    pub(crate) person: bool,
}

impl Api {
    /// The content with the mentioned files, and the notices for its author. Only names of things in the working directory
    /// count as mentions.
    pub(crate) async fn with_mentions(
        &self,
        speaker: &Speaker,
        mut content: Vec<Block>,
    ) -> Result<(Vec<Block>, Vec<String>), Fault> {
        let texts = content.iter().filter_map(|block| match block {
            Block::Text { text } => Some(text.as_str()),
            _ => None,
        });
        let (mut named, mut outside) = (Vec::new(), Vec::new());
        for text in texts {
            named.extend(mentions(text));
            outside.extend(outside_mentions(text));
        }
        outside.retain(|_| speaker.person);
        let most = usize::try_from(self.loaded().settings.agents.mentions).unwrap_or(usize::MAX);
        let over = named.len().saturating_sub(most);
        named.truncate(most);
        outside.truncate(most);
        if named.is_empty() && outside.is_empty() {
            return Ok((content, Vec::new()));
        }
        let workdir = PathBuf::from(&speaker.workdir);
        let dir = workdir.clone();
        let asked: Vec<String> = named.iter().map(|mention| mention.path.clone()).collect();
        let looked = reading("the mentioned files", &workdir, move || {
            // Some languages write module names like `@/components/x`.
            outside.retain(|mention| {
                !mention.path.starts_with('/') || Path::new(&mention.path).symlink_metadata().is_ok()
            });
            (places_of(&dir, named), outside)
        });
        let (places, outside) = looked.await?;
        let mut notices = unfound(speaker, &asked, &places);
        let (mut allowed, mut left_out) = (Vec::new(), Vec::new());
        let why = "it is outside the working directory";
        left_out.extend(outside.into_iter().map(|mention| (mention.path, why.to_owned())));
        for place in places {
            match self.forbidden(speaker, &place).await? {
                Some(why) => left_out.push((place.path, why)),
                None => allowed.push(place),
            }
        }
        // The log shows the refusals to the model, too; it may ask to read the files.
        let mut text = String::new();
        for (path, why) in &left_out {
            let path = cut(path);
            text.push_str(&format!("[{path} is not attached: {why}]\n"));
            notices.push(format!("@{path} is not attached: {why}"));
        }
        let limits = self.attach_limits();
        let dir = workdir.clone();
        let read = move || attached(&dir, &allowed, limits);
        let Attached { text: said, images } = reading("the mentioned files", &workdir, read).await?;
        text.push_str(&said);
        if over > 0 {
            text.push_str(&format!(
                "\n[{over} more mentions are not attached: agents.mentions is {most}]"
            ));
        }
        // Some dialects join texts without a separator.
        let text = Some(text).filter(|text| !text.trim().is_empty());
        content.extend(text.map(|text| Block::text(format!("\n\n{}", text.trim_end()))));
        self.with_images(&mut content, images, &mut notices);
        Ok((content, notices))
    }

    /// Adds mentioned images, as far as providers accept them and there is room.
    fn with_images(
        &self,
        content: &mut Vec<Block>,
        images: Vec<(String, Vec<u8>)>,
        notices: &mut Vec<String>,
    ) {
        let mut bytes = 0;
        for (path, image) in images {
            let path = cut(&path);
            let checked = check_image(&image, &self.loaded().settings.tools)
                .map_err(|error| format!("it {error}"))
                .and_then(|found| {
                    let room = validate::room_for_images(bytes + image.len());
                    room.map(|()| found).map_err(|fault| fault.message)
                });
            match checked {
                Ok((media_type, width, height)) => {
                    bytes += image.len();
                    content.push(Block::text(format!(
                        "\n[{path}: {media_type}, {width} x {height} pixels]"
                    )));
                    content.push(Block::Image {
                        media_type: media_type.to_owned(),
                        source: ImageSource::Data(STANDARD.encode(&image)),
                    });
                }
                Err(why) => {
                    content.push(Block::text(format!("\n[{path} is not attached: {why}]")));
                    notices.push(format!("@{path} is not attached: {why}"));
                }
            }
        }
    }

    fn attach_limits(&self) -> AttachLimits {
        let loaded = self.loaded();
        let settings = &loaded.settings;
        let size = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
        AttachLimits {
            lines: size(settings.tools.max_lines.into()),
            bytes: size(settings.tools.max_bytes),
            all: size(settings.agents.mention_bytes),
            image: size(settings.tools.max_image_bytes),
        }
    }

    /// Why the rules forbid reading a place, if they do. Reading that would need an approval is allowed if a person names
    /// the place.
    async fn forbidden(&self, speaker: &Speaker, place: &MentionedPath) -> Result<Option<String>, Fault> {
        let mut paths = vec![&place.path];
        if place.real != place.path {
            paths.push(&place.real);
        }
        for path in paths {
            let request = JudgeRequest {
                session: speaker.session,
                tool: if place.directory {
                    agentd_policy::LS
                } else {
                    agentd_policy::READ
                }
                .to_owned(),
                subject: Subject::Path {
                    write: false,
                    path: path.clone(),
                },
                effect: EffectClass::Read,
                mode: speaker.mode,
                workdir: speaker.workdir.clone(),
                rules: speaker.rules.clone(),
                here: Here::default(),
                grants: Vec::new(),
                always: Vec::new(),
            };
            let judge = |done| GateMsg::Judge {
                request: Box::new(request),
                done,
            };
            let judgement = self.parts.gate.call(READ, judge).await.map_err(fault_of)?;
            let kind = judgement.verdict.kind;
            if kind == VerdictKind::Deny || (kind == VerdictKind::Ask && !speaker.person) {
                return Ok(Some(judgement.verdict.reason));
            }
        }
        Ok(None)
    }
}

/// Notices for mentions that match no file. A person is not warned about mentions in a command file.
fn unfound(speaker: &Speaker, asked: &[String], places: &[MentionedPath]) -> Vec<String> {
    let found = |path: &String| places.iter().any(|place| place.mention.path == *path);
    let missing = asked.iter().filter(|path| speaker.person && !found(path));
    let told = missing.map(|path| {
        let path = cut(path);
        format!("@{path} is not a file in the working directory: it stays text, and nothing is attached")
    });
    told.collect()
}
