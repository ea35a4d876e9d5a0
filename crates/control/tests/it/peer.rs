//! Which peers may connect.

use crate::wire_client::Server;
use agentd_wire::{ClientFrame, Decoder, FrameLimits, Hello, ServerFrame, VersionRange, decode, encode};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

/// Acts as a tool: the test below runs this test in a child process, with the socket in its working directory.
#[test]
fn a_child_process_is_refused_by_the_socket() {
    let Ok(mut stream) = UnixStream::connect(Path::new("agentd.sock")) else {
        return;
    };
    let hello = Hello {
        protocol: VersionRange::OURS,
        client: "tool".into(),
        token: None,
    };
    // The daemon may have closed already; its frame can still be read.
    let _ = stream.write_all(&encode(&ClientFrame::Hello(hello), 1_000).unwrap());
    let (mut decoder, mut bytes) = (Decoder::new(FrameLimits::default()), Vec::new());
    let _ = stream.read_to_end(&mut bytes);
    decoder.feed(&bytes);
    let body = decoder.next_frame().unwrap().unwrap();
    match decode::<ServerFrame>(&body, FrameLimits::default()).unwrap() {
        ServerFrame::Fault { id: None, fault } => assert_eq!(fault.code, "tool_refused"),
        other => panic!("taken in: {other:?}"),
    }
    assert_eq!(decoder.next_frame(), Ok(None));
}

#[tokio::test(flavor = "multi_thread")]
async fn i7_a_process_started_by_the_daemon_cannot_control_it() {
    let server = Server::start(|_| {}).await;
    let exe = std::env::current_exe().unwrap();
    #[expect(clippy::disallowed_methods, reason = "the test plays a tool")]
    let mut tool = tokio::process::Command::new(exe);
    tool.args([
        "--exact",
        "peer::a_child_process_is_refused_by_the_socket",
        "--nocapture",
    ]);
    let output = tool
        .current_dir(server.path.parent().unwrap())
        .output()
        .await
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
    // The process itself is not a tool.
    server.client().await;
}
