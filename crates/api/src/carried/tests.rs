use super::*;
use agentd_protocol::FaultClass;

/// The lines of a content as in an export.
fn lines(content: &Bytes, frame: u64) -> Vec<BlobPart> {
    let name = agentd_store::Blob::new(content.clone()).name().to_owned();
    let (mut parts, mut offset) = (Vec::new(), 0);
    loop {
        let params = BlobParams {
            name: name.clone(),
            offset,
        };
        let part = part(params, content, frame).unwrap();
        offset += size(STANDARD.decode(&part.data).unwrap().len());
        parts.push(part);
        if offset == size(content.len()) {
            return parts;
        }
    }
}

async fn read(parts: &[BlobPart], max: u64) -> Result<Contents, Fault> {
    let named = parts.iter().map(|part| part.blob.clone()).collect();
    read_named(parts, &named, max).await
}

async fn read_named(parts: &[BlobPart], named: &BTreeSet<String>, max: u64) -> Result<Contents, Fault> {
    let line = |part| Bytes::from(serde_json::to_vec(part).unwrap());
    let lines = parts.iter().map(line).collect();
    Contents::read(lines, 7, named, max).await
}

#[tokio::test]
async fn contents_are_restored_from_their_parts() {
    let long = Bytes::from((0..=255).cycle().take(1_000).collect::<Vec<u8>>());
    for content in [&long, &Bytes::from_static(b"short"), &Bytes::new()] {
        let mut parts = lines(content, 200);
        assert_eq!(parts.len(), content.len().div_ceil(99).max(1));
        let other = Bytes::from_static(b"another one");
        parts.extend(lines(&other, 200));
        let contents = read(&parts, 1_000).await.unwrap();
        let bytes: Vec<Bytes> = contents.each().map(Result::unwrap).collect();
        assert_eq!(bytes, [content.clone(), other]);
        assert_eq!(contents.names().len(), 2);
    }
    let params = BlobParams {
        name: "x".into(),
        offset: 1_001,
    };
    assert_eq!(part(params, &long, 200).unwrap_err().code, "bad_offset");
}

#[tokio::test]
async fn i7_contents_with_a_wrong_checksum_are_refused_with_their_line() {
    let content = Bytes::from(vec![b'a'; 300]);
    let good = lines(&content, 200);
    let refused = async |parts: &[BlobPart], max, says: &str| {
        let fault = read(parts, max).await.unwrap_err();
        assert!(fault.message.contains(says), "{fault:?} does not say {says:?}");
        fault
    };
    let changed = |change: fn(&mut BlobPart)| {
        let mut parts = good.clone();
        parts.get_mut(1).into_iter().for_each(change);
        parts
    };
    let wrong = changed(|part| part.data = STANDARD.encode([b'b'; 99]));
    let fault = refused(&wrong, 300, "it was changed").await;
    assert_eq!(
        (fault.class, fault.code.as_str()),
        (FaultClass::Invalid, "bad_import")
    );
    assert!(fault.message.contains("11"), "the line of its end: {fault:?}");
    assert_eq!(
        refused(&good, 299, "the limit is 299").await.code,
        "blob_too_large"
    );
    assert!(read(&good, 300).await.is_ok(), "the limit itself is allowed");
    refused(&good[..2], 300, "ends after 198 of 300").await;
    refused(&good[1..], 300, "from byte 0 of 300").await;
    refused(&changed(|part| part.of = u64::MAX), 300, "expected content").await;
    refused(&changed(|part| part.data = String::new()), 300, "are missing").await;
    refused(
        &changed(|part| part.data = STANDARD.encode([0; 299])),
        300,
        "are missing",
    )
    .await;
    refused(&changed(|part| part.data = "%".into()), 300, "line 9: data").await;
    let twice = [good.clone(), good.clone()].concat();
    refused(&twice, 300, "twice").await;
    let fault = read_named(&good, &BTreeSet::new(), 300).await.unwrap_err();
    assert!(
        fault.message.contains("no event of the file refers to"),
        "{fault:?}"
    );
    let many: Vec<BlobPart> = (0..=MAX_CONTENTS)
        .flat_map(|n| lines(&Bytes::from(n.to_string()), 200))
        .collect();
    assert!(read(&many[..MAX_CONTENTS], 300).await.is_ok());
    assert_eq!(read(&many, 300).await.unwrap_err().code, "too_many_blobs");
}

#[test]
fn an_event_after_a_content_is_refused() {
    let lines = [r#"{"v":1}"#, r#"{"blob":"x"}"#, r#"{"v":1}"#]
        .map(Bytes::from)
        .to_vec();
    let (events, parts) = split(lines);
    assert_eq!((events.len(), parts.len()), (1, 2));
    assert!(
        decode(&parts[1], 3)
            .unwrap_err()
            .message
            .contains("not a valid part")
    );
    assert_eq!(split(Vec::new()), (Vec::new(), Vec::new()));
}
