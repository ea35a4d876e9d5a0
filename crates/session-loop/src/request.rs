//! The request of a model call, from pieces that are encoded once.

use crate::services::Services;
use agentd_provider::{
    EncodedHistory, ModelSpec, Params, Prompt, RequestBody, ToolDef, encode_prefix, encode_suffix,
};
use agentd_tools::Registry;
use agentd_transcript::Transcript;
use bytes::Bytes;

/// The pieces that stay the same from step to step. The work of a step is what is new in it.
#[derive(Debug)]
pub(crate) struct Requests {
    system: String,
    frame: Option<Frame>,
    history: EncodedHistory,
}

/// What stands around the conversation.
#[derive(Debug)]
struct Frame {
    model: String,
    tools_off: bool,
    prefix: Bytes,
    suffix: Bytes,
}

impl Requests {
    pub(crate) fn new(system: String) -> Self {
        Self {
            system,
            frame: None,
            history: EncodedHistory::new(),
        }
    }

    /// The body of the next request.
    pub(crate) fn body(
        &mut self,
        services: &Services,
        offered: &[String],
        spec: &ModelSpec,
        transcript: &Transcript,
        tools_off: bool,
    ) -> RequestBody {
        self.history
            .extend(spec, transcript.generation(), transcript.messages());
        let (prefix, suffix) = self.frame(&services.registry, offered, spec, tools_off);
        RequestBody::new(prefix, &self.history, suffix)
    }

    fn frame(
        &mut self,
        registry: &Registry,
        offered: &[String],
        spec: &ModelSpec,
        tools_off: bool,
    ) -> (Bytes, Bytes) {
        if let Some(frame) = &self.frame
            && frame.model == spec.name
            && frame.tools_off == tools_off
        {
            return (frame.prefix.clone(), frame.suffix.clone());
        }
        let tools = definitions(registry, offered);
        let params = Params {
            tools_off,
            max_output: None,
        };
        let prefix = encode_prefix(spec, &Prompt { system: &self.system }, &tools, &params);
        let suffix = encode_suffix(spec, &tools, &params);
        let frame = Frame {
            model: spec.name.clone(),
            tools_off,
            prefix,
            suffix,
        };
        let pieces = (frame.prefix.clone(), frame.suffix.clone());
        self.frame = Some(frame);
        pieces
    }
}

/// The offered tools in the registry's order, so that the bytes do not depend on how the session was created.
fn definitions(registry: &Registry, offered: &[String]) -> Vec<ToolDef> {
    let offered = |name: &str| offered.iter().any(|tool| tool == name);
    let definition = |spec: &agentd_tools::ToolSpec| ToolDef {
        name: spec.name.to_owned(),
        description: spec.description.to_owned(),
        schema: spec.schema.clone(),
    };
    registry
        .specs()
        .iter()
        .filter(|spec| offered(spec.name))
        .map(definition)
        .collect()
}
