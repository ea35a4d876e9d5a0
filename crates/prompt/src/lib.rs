//! Everything that a model reads in addition to the conversation: the system prompt with its layers, instruction files,
//! custom agents, skills, and commands defined by files.
//!
//! All files are read once, when a session is created, and kept in its first event: a session always produces the same
//! bytes, so that the provider's prompt cache stays valid. There is no clock here; the date is the day on which the
//! session was created. Later changes arrive as a note in the newest message, never here.
//!
//! Invariants held here: files are read only beneath the project's root or the operator's directory, so a link in a
//! repository cannot pull a foreign file (such as a key) into a prompt (I8); an unreadable file is left out and named
//! (I7); a project's file may narrow an agent and never widen it.
//!
//! A sentence about a tool is in a prompt only if the session offers the tool: the texts name tools as [`OfferedTools`]
//! demands it.
//!
//! Flow: [`agent`] and [`sources`] when a session is created -> `SessionCreated` -> [`session_prompt`].

mod agents;
mod attach;
mod base;
mod commands;
mod front_matter;
mod instructions;
mod library;
mod mention;
mod places;
mod prompt;
mod side;
mod skills;
mod slash;
#[cfg(test)]
mod testing;
mod toolset;

pub use agents::{AgentDefinition, agent, stricter};
pub use attach::{AttachLimits, Attached, MentionedPath, attached, places_of};
pub use base::template_of;
pub use commands::{command_list, command_text};
pub use instructions::instruction_files;
pub use mention::{Mention, mentions, outside_mentions};
pub use places::{Origin, PROJECT_DIRECTORY, Places, ReadJudge};
pub use prompt::{Layers, SystemPrompt, build, session_prompt, shared_bytes, sources};
pub use side::{SideQuestion, intent_question, summary_question, title_question};
pub use skills::{Skill, skill, skill_list};
pub use slash::{Slash, slash};
pub use toolset::{OfferedTools, ToolLine, without_tools};
