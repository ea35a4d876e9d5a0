//! The contents of changed files before the change, stored as blobs for undo.

use crate::conceal;
use crate::run::{BLOB_IN_APPEND, PUT_WITHIN};
use agentd_actor_kit::{Handle, StoreMsg};
use agentd_protocol::{SessionId, ToolOutcome};
use agentd_store::Blob;
use agentd_tools::PreImage;
use bytes::Bytes;
use serde_json::Value;

/// Stores the contents: small ones travel with the result into its append. The result's details name those that could
/// not be stored (`not_kept`), because their change cannot be undone.
pub(crate) async fn keep(
    pre_images: Vec<PreImage>,
    (store, session): (&Handle<StoreMsg>, SessionId),
    outcome: &mut ToolOutcome,
) -> Vec<Blob> {
    let mut blobs = Vec::new();
    let mut room = BLOB_IN_APPEND;
    let mut not_kept = Vec::new();
    for PreImage { sha256, bytes } in pre_images {
        match one(bytes, &mut room, (store, session)).await {
            Ok(blob) => blobs.extend(blob),
            Err(error) => {
                tracing::warn!(%error, "could not keep the content of a file before its change");
                not_kept.push(Value::from(sha256));
            }
        }
    }
    if let (false, Some(Value::Object(details))) = (not_kept.is_empty(), &mut outcome.details) {
        details.insert("not_kept".to_owned(), Value::from(not_kept));
    }
    blobs
}

async fn one(
    bytes: Vec<u8>,
    room: &mut usize,
    (store, session): (&Handle<StoreMsg>, SessionId),
) -> Result<Option<Blob>, String> {
    let length = bytes.len();
    let safe = conceal::bytes(bytes.clone()).await?;
    if safe != bytes {
        // Without the credential it would be a different file, and a file with a credential is never stored (I8).
        return Err("it contains a credential of this daemon".to_owned());
    }
    let bytes = Bytes::from(bytes);
    if length <= *room {
        *room -= length;
        return Ok(Some(Blob::new(bytes)));
    }
    let put = store
        .call(PUT_WITHIN, |done| StoreMsg::PutBlob { session, bytes, done })
        .await;
    match put {
        Ok(Ok(_)) => Ok(None),
        Ok(Err(error)) => Err(error.to_string()),
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use agentd_actor_kit::Pointer;
    use agentd_protocol::ToolStatus;
    use serde_json::json;

    fn image(name: &str, bytes: impl Into<Vec<u8>>) -> PreImage {
        PreImage {
            sha256: name.to_owned(),
            bytes: bytes.into(),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn i8_small_contents_without_credentials_are_stored_and_others_named() {
        const SECRET: &str = "a key that is in a file, too";
        agentd_text::register_secret(SECRET);
        // No store is running to take a larger content.
        let store = Pointer::new("the store").handle();
        let mut outcome = ToolOutcome {
            details: Some(json!({ "undo_id": "1" })),
            ..ToolOutcome::text(ToolStatus::Ok, "changed")
        };
        let room = BLOB_IN_APPEND;
        let images = vec![
            image("small", "x"),
            image("secret", format!("key = {SECRET}")),
            image("fits exactly", vec![b'y'; room - 1]),
            image("one too many", "z"),
        ];
        let blobs = keep(images, (&store, SessionId::NIL), &mut outcome).await;
        let sizes: Vec<usize> = blobs.iter().map(|blob| blob.bytes().len()).collect();
        assert_eq!(sizes, [1, room - 1]);
        let details = json!({ "undo_id": "1", "not_kept": ["secret", "one too many"] });
        assert_eq!(outcome.details, Some(details));
    }
}
