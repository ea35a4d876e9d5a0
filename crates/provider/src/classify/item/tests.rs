use crate::classify::classify;
use crate::error::Advice;
use agentd_protocol::{FailureClass, RefusedItem, RequestPart};
use reqwest::header::HeaderMap;
use serde_json::json;

fn advice(status: u16, message: &str) -> Option<Advice> {
    let body = json!({"error": {"type": "invalid_request_error", "message": message}}).to_string();
    let error = classify(status, &HeaderMap::new(), body.as_bytes());
    assert!(
        !matches!(
            error.class,
            FailureClass::Transient | FailureClass::ContextOverflow
        ),
        "{:?} {message}",
        error.class
    );
    error.advice
}

/// Messages about an image, with the status, and the index of its message if the server names it.
const IMAGES: &[(u16, &str, Option<u64>)] = &[
    (
        400,
        "messages.0.content.1.image.source.base64.data: Image does not match the provided media type image/jpeg",
        Some(0),
    ),
    (
        400,
        "messages.14.content.0.image.source.base64: image exceeds 5 MB maximum: 6032452 bytes > 5242880 bytes",
        Some(14),
    ),
    (
        413,
        "messages.3.content.0.image.source.base64: image exceeds 5 MB maximum: 6032452 bytes > 5242880 bytes",
        Some(3),
    ),
    (
        400,
        "messages.2.content.0.tool_result.content.0.image.source.base64.data: At least one of the image dimensions exceed max allowed size: 8000 pixels",
        Some(2),
    ),
    (
        400,
        "messages.9.content.4.image.source.base64.data: At least one of the image dimensions exceed max allowed size for many-image requests: 2000 pixels",
        Some(9),
    ),
    (400, "Could not process image", None),
    (
        400,
        "The image data you provided does not represent a valid image. Please check your input and try again.",
        None,
    ),
    (
        400,
        "You uploaded an unsupported image. Please make sure your image is below 20 MB in size and is of one the following formats: ['png', 'jpeg', 'gif', 'webp'].",
        None,
    ),
    (
        400,
        "Invalid 'messages[1].content[1].image_url.url'. Expected a base64-encoded data URL with an image MIME type (e.g. 'data:image/png;base64,aW1nIGJ5dGVzIGhlcmU='), but got a value without the 'data:' prefix.",
        Some(1),
    ),
    (400, "Invalid base64 image_url.", None),
    (
        400,
        "Failed to download image from https://example.com/a.png.",
        None,
    ),
    (
        400,
        "Unable to process input image. Please retry or report in https://developers.generativeai.google/guide/troubleshooting",
        None,
    ),
    (400, "Provided image is not valid.", None),
    (400, "Unsupported MIME type: image/bmp", None),
    (
        400,
        "The model returned the following errors: Could not process image",
        None,
    ),
    (400, "Failed to sanitize image", None),
    (
        500,
        "cannot identify image file <_io.BytesIO object at 0x7f2a>",
        None,
    ),
    (400, "Failed to load image: Incorrect padding", None),
    (500, "Failed to load image or audio file", None),
    (
        400,
        "Image content must be a URL (starting with 'https') or base64 encoded image (starting with 'data:image')",
        None,
    ),
    (
        400,
        "Image, 'data:image/png;base64,iVBO...', could not be loaded as a valid image.",
        None,
    ),
    (
        400,
        "The image length and width do not meet the model restrictions. [height:1 or width:1 must be larger than 10]",
        None,
    ),
    (422, "Unrecognized image format", None),
    (400, "Image is too small. Minimum number of pixels is 512.", None),
    (400, "At most 1 image(s) may be provided in one request.", None),
    (400, "Too many images in request: 24 + 1 > 20", None),
    (
        400,
        "litellm.BadRequestError: Invalid image received - not a data URL. Supported formats are png, jpeg.",
        None,
    ),
    (400, "image: unknown format", None),
    (
        400,
        "Your input image may contain content that is not allowed by our safety system.",
        None,
    ),
    (
        400,
        "* GenerateContentRequest.contents[5].parts[1].inline_data.data: invalid image",
        Some(5),
    ),
    (400, "failed to decode image bytes", None),
];

#[test]
fn images_that_are_refused_are_recognized() {
    for (status, message, index) in IMAGES {
        let expected = Advice::Item(RefusedItem::Image { message: *index });
        assert_eq!(advice(*status, message), Some(expected), "{message}");
    }
}

#[test]
fn a_model_without_images_is_sent_none() {
    for (status, message) in [
        (400, "'claude-2.1' does not support image input."),
        (404, "No endpoints found that support image input"),
        (
            500,
            "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj",
        ),
        (
            400,
            "Invalid content type. image_url is only supported by certain models.",
        ),
        (
            422,
            "Failed to deserialize the JSON body into the target type: messages[2]: unknown variant `image_url`, expected `text`",
        ),
        (400, "None is not a multimodal model"),
        (400, "Image input is not enabled for this model"),
        (400, "This model does not support images."),
        (400, "messages[1].content must be a string"),
        (400, "this model is missing data required for image input"),
    ] {
        let expected = Advice::Without(RequestPart::Images);
        assert_eq!(advice(status, message), Some(expected), "{message}");
    }
}

/// Messages about the description of a tool, with its name or its index if the server gives them.
const TOOLS: &[(u16, &str, Option<&str>, Option<u64>)] = &[
    (
        400,
        "Invalid schema for function 'mcp__crm__add-lead': In context=('properties', 'tags'), array schema missing items.",
        Some("mcp__crm__add-lead"),
        None,
    ),
    (
        400,
        "Invalid schema for function 'ls': schema must be a JSON Schema of 'type: \"object\"', got 'type: \"None\"'.",
        Some("ls"),
        None,
    ),
    (
        400,
        "Invalid schema for function: mcp__x__y",
        Some("mcp__x__y"),
        None,
    ),
    (
        400,
        "Invalid schema for function 'set_temperature': 'num' is not valid under any of the given schemas.",
        Some("set_temperature"),
        None,
    ),
    (
        400,
        "Invalid schema for function 'mcp__sequential-thinking__sequentialthinking': None is not of type 'array'.",
        Some("mcp__sequential-thinking__sequentialthinking"),
        None,
    ),
    (
        400,
        "Invalid schema for function 'make_image': schema is invalid.",
        Some("make_image"),
        None,
    ),
    (
        400,
        "Invalid 'tools[3].function.name': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.",
        None,
        Some(3),
    ),
    (
        400,
        "tools.11.custom.input_schema: JSON schema is invalid. It must match JSON Schema draft 2020-12 (https://json-schema.org/draft/2020-12).",
        None,
        Some(11),
    ),
    (
        400,
        "tools.0.custom.input_schema.type: Field required",
        None,
        Some(0),
    ),
    (
        400,
        "tools.7.custom.input_schema: input_schema does not support oneOf, allOf, or anyOf at the top level",
        None,
        Some(7),
    ),
    (
        400,
        "tools.5.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'",
        None,
        Some(5),
    ),
    (400, "tools: Tool names must be unique.", None, None),
    (
        400,
        "* GenerateContentRequest.tools[0].function_declarations[12].parameters.properties[x].items: missing field.",
        None,
        Some(12),
    ),
    (
        400,
        "Invalid JSON payload received. Unknown name \"$schema\" at 'tools[0].function_declarations[3].parameters': Cannot find field.",
        None,
        Some(3),
    ),
    (
        400,
        "Unable to submit request because `create_thing` functionDeclaration `parameters.x` schema didn't specify the schema type field.",
        Some("create_thing"),
        None,
    ),
    (
        400,
        "invalid JSON schema for tool get_weather, `tools[2].function.parameters`: `/properties/a`: is not an object",
        Some("get_weather"),
        Some(2),
    ),
    (
        400,
        "Invalid tool parameters schema : field `anyOf`: missing field `type`",
        None,
        None,
    ),
    (
        400,
        "JSON schema conversion failed: Unrecognized schema: {\"not\":{}}",
        None,
        None,
    ),
    (
        500,
        "JSON schema conversion failed: Unrecognized schema: {\"not\":{}}",
        None,
        None,
    ),
    (500, "failed to parse grammar", None, None),
    (
        400,
        "The value at toolConfig.tools.2.toolSpec.inputSchema.json.type must be one of the following: object.",
        None,
        Some(2),
    ),
    (
        400,
        "Invalid request: tools.function.parameters is not a valid moonshot flavored json schema, details: <At path 'properties.x': unknown type>",
        None,
        None,
    ),
    (400, "tools[4].parameters is invalid", None, Some(4)),
    (422, "tools[6].function.parameters: invalid", None, Some(6)),
];

#[test]
fn tools_whose_description_is_refused_are_recognized() {
    for (status, message, name, index) in TOOLS {
        let expected = Advice::Item(RefusedItem::Tool {
            name: name.map(str::to_owned),
            index: *index,
        });
        assert_eq!(advice(*status, message), Some(expected), "{message}");
    }
}

#[test]
fn reasoning_that_is_refused_is_left_out() {
    for message in [
        "messages.1.content.0: Invalid `signature` in `thinking` block",
        "messages.3.content.0.thinking.signature: Field required in thinking block",
        "messages.5.content.1: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified",
        "The encrypted content gAAA... could not be verified. Reason: Encrypted content could not be decrypted or parsed.",
        "Thought signature is not valid",
        "Corrupted thought signature.",
        "Unable to submit request because Thought signature is not valid.",
        "Item 'rs_123' of type 'reasoning' was provided without its required following item.",
        "property 'reasoning_content' is unsupported",
    ] {
        let expected = Advice::Without(RequestPart::Reasoning);
        assert_eq!(advice(400, message), Some(expected), "{message}");
    }
}

#[test]
fn other_refusals_are_about_no_item() {
    for message in [
        "messages: bad",
        "Invalid model: gpt-image-1",
        "The model `gpt-image-1` does not exist",
        "model: claude-none not found",
        "messages.3: `tool_use` ids were found without `tool_result` blocks immediately after",
        "messages: roles must alternate between \"user\" and \"assistant\"",
        "messages.2: all messages must have non-empty content",
        "max_tokens: 100000 > 64000, which is the maximum allowed number of output tokens",
        "tools are not supported by this model",
        "registry.ollama.ai/library/x does not support tools",
        "No endpoints found that support tool use.",
        "tool_choice: Input should be a valid dictionary",
        "Could not process PDF",
        "The PDF specified was not valid.",
        "Unknown parameter: 'foo'.",
        "Invalid value: 'assistants'. Supported values are: 'system', 'user'.",
        "top_p must be at most 1",
        "Request failed validation",
        "stop: at most 4 items are allowed",
        "Organization has been disabled",
    ] {
        let found = advice(400, message);
        assert!(
            !matches!(
                found,
                Some(Advice::Item(_) | Advice::Without(RequestPart::Images))
            ),
            "{message}: {found:?}"
        );
    }
}
