//! Tags of settings, so that of two clients that read the same settings and change them, only one succeeds.

use crate::api::Api;
use crate::sight::Caller;
use agentd_protocol::{Fault, Summary};
use agentd_turn::{ShownSettings, settings_changed};
use sha2::{Digest as _, Sha256};
use std::fmt::Write as _;

/// The bytes of the hash that make a tag.
const BYTES: usize = 12;

/// The tag of the settings of a session.
pub(crate) fn tag(summary: &Summary) -> String {
    // Settings are plain data, so this cannot fail.
    let settings = serde_json::to_vec(&ShownSettings::from(summary)).unwrap_or_default();
    let mut tag = String::new();
    for byte in Sha256::digest(settings).iter().take(BYTES) {
        let _ = write!(tag, "{byte:02x}");
    }
    tag
}

impl Api {
    /// The settings with the expected tag. The session's loop compares them again, when it carries out the update.
    pub(crate) async fn expected(
        &self,
        who: &Caller,
        session: &str,
        expect: Option<&str>,
    ) -> Result<Option<Box<ShownSettings>>, Fault> {
        let Some(expect) = expect else {
            return Ok(None);
        };
        let summary = self.row_of(who, session).await?.1.summary;
        if tag(&summary) == expect {
            Ok(Some(Box::new(ShownSettings::from(&summary))))
        } else {
            Err(settings_changed())
        }
    }
}
