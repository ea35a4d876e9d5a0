//! What a model is told besides the conversation: the system prompt of a session with its layers, instruction files,
//! custom agents, skills, and commands that are files.
//!
//! Everything that is read is read once, when a session is created, and kept in its first event: the same session gives the
//! same bytes for its life, so that a provider's prompt cache holds. There is no clock here; the date is the day on which
//! the session was created. What changes later comes as a note in the newest message, never here.
//!
//! Invariants held here: files are read beneath the project's root or the operator's directory only, so a link in a
//! repository cannot pull a foreign file (a key, say) into a prompt (I8); a file that cannot be read is left out and named
//! (I7); what comes from a project may narrow an agent and never widen it.
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

pub use agents::{AgentDefinition, agent, stricter};
pub use attach::{AttachLimits, Attached, Place, attached, places_of};
pub use base::template_of;
pub use commands::{command_list, command_text};
pub use instructions::instruction_files;
pub use mention::{Mention, mentions, outside_mentions};
pub use places::{Origin, PROJECT_DIRECTORY, Places, ReadJudge};
pub use prompt::{Layers, build, session_prompt, sources};
pub use side::{SideQuestion, intent_question, summary_question, title_question};
pub use skills::{Skill, skill, skill_list};
pub use slash::{Slash, slash};
