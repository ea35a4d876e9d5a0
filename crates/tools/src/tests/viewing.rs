//! Read on files that are not text: images, stored outputs, documents.

use super::*;
use crate::seen::sha256;
use agentd_protocol::{EventBody, ToolFinished, Truncated};
use serde_json::json;

fn png(width: u32, height: u32) -> Vec<u8> {
    let mut image = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
    image.extend(width.to_be_bytes());
    image.extend(height.to_be_bytes());
    image.extend([8, 2, 0, 0, 0]);
    image
}

impl World {
    /// Adds a stored output of this session whose result was cut.
    fn cut(&mut self, content: &[u8]) -> String {
        let name = sha256(content);
        self.blobs.insert(name.clone(), content.to_vec());
        let outcome = ToolOutcome {
            truncated: Some(Truncated {
                bytes: 1,
                lines: 1,
                spill: Some(name.clone()),
            }),
            ..ToolOutcome::text(ToolStatus::Ok, "cut")
        };
        let tool_call = ToolCallId::NIL;
        self.seen
            .learn(&EventBody::from(ToolFinished { tool_call, outcome }));
        name
    }
}

#[tokio::test]
async fn an_image_is_returned_as_an_image_and_a_document_is_not() {
    let mut world = World::new();
    world.put("shot.png", png(640, 480)).put("paper", b"%PDF-1.7\n");
    let outcome = world.call("Read", json!({ "file_path": "shot.png" })).await;
    assert_eq!((outcome.status, outcome.media.len()), (ToolStatus::Ok, 1));
    assert!(outcome.llm_text.contains("640 x 480"), "{}", outcome.llm_text);
    let (code, text) = world.refused("Read", json!({ "file_path": "paper" })).await;
    assert_eq!(code, "E_BINARY");
    assert!(text.contains("pdftotext"), "{text}");
}

#[tokio::test]
async fn a_stored_output_is_readable_only_by_its_session() {
    let mut world = World::new();
    world.limits.max_lines = 2;
    let name = world.cut(b"one\ntwo\nthree\n");
    let path = |name: &str| json!({ "file_path": format!("blob:{}", &name[..16]) });
    let text = world.ok("Read", path(&name)).await;
    assert!(
        text.contains("2\ttwo\n") && text.contains("Continue with offset=3"),
        "{text}"
    );
    let mut rest = path(&name);
    rest["offset"] = json!(3);
    let text = world.ok("Read", rest).await;
    assert!(text.contains("3\tthree\n"), "{text}");
    let foreign = sha256(b"of another session");
    world
        .blobs
        .insert(foreign.clone(), b"of another session".to_vec());
    assert_eq!(world.refused("Read", path(&foreign)).await.0, "E_NOT_FOUND");
    world.blobs.clear();
    let (code, text) = world.refused("Read", path(&name)).await;
    assert_eq!(
        (code.as_str(), text.contains("no longer exists")),
        ("E_NOT_FOUND", true)
    );
    // A file may have such a name, too.
    world.put("blob:x", "a file\n");
    assert!(
        world
            .ok("Read", json!({ "file_path": "blob:x" }))
            .await
            .contains("a file")
    );
}

#[tokio::test]
async fn a_pointer_of_git_lfs_is_called_one() {
    let mut world = World::new();
    let pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n";
    let text = format!(
        "{pointer}\nThis is what a pointer looks like.\n{}",
        "-".repeat(1024)
    );
    world.put("big.bin", pointer).put("about.md", text);
    let read = |name: &str| json!({ "file_path": name });
    let said = world.ok("Read", read("big.bin")).await;
    assert!(
        said.contains("oid sha256:4d7a") && said.ends_with("own content is not here.]\n"),
        "{said}"
    );
    assert!(!world.ok("Read", read("about.md")).await.contains("not here"));
}
