//! The frames that a client sends.

use crate::codec::decode;
use crate::error::WireError;
use crate::handshake::Hello;
use crate::limits::FrameLimits;
use agentd_protocol::{Unique, from_named, kind_of};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

/// A frame of a client.
#[derive(Debug, Clone, PartialEq)]
pub enum ClientFrame {
    /// The first frame.
    Hello(Hello),
    /// Every later frame.
    Request(Request),
}

/// A method call.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// The client's id for the answer.
    pub id: u64,
    /// The name of the method, for example `session.create`.
    pub method: String,
    /// The parameters: a map.
    pub params: Value,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Flat {
    #[serde(deserialize_with = "present")]
    hello: Option<Value>,
    #[serde(deserialize_with = "present")]
    id: Option<Value>,
    #[serde(deserialize_with = "present")]
    method: Option<Value>,
    #[serde(deserialize_with = "present")]
    params: Option<Value>,
}

/// A present field, null or not.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Unique::deserialize(deserializer).map(|Unique(value)| Some(value))
}

/// Decodes a client's frame from a body. Ignores unknown fields.
///
/// # Errors
/// As [`decode`]; [`WireError::Unfit`] if the body is a map, but neither a hello nor a request. The next frame can be
/// read after that.
pub fn decode_client(body: &[u8], limits: FrameLimits) -> Result<ClientFrame, WireError> {
    let flat: Flat = decode(body, limits)?;
    let id = flat.id.as_ref().and_then(Value::as_u64);
    frame_of(flat).map_err(|why| WireError::Unfit { id, why })
}

fn frame_of(flat: Flat) -> Result<ClientFrame, String> {
    match flat {
        Flat {
            hello: Some(hello),
            id: None,
            method: None,
            params: None,
        } => {
            let hello = from_named(&hello).map_err(|error| format!("hello: {error}"))?;
            Ok(ClientFrame::Hello(hello))
        }
        Flat {
            hello: None,
            id: Some(id),
            method: Some(method),
            params,
        } => Ok(ClientFrame::Request(Request {
            id: id
                .as_u64()
                .ok_or_else(|| unexpected("id", "an unsigned 64-bit integer", &id))?,
            method: match method {
                Value::String(method) => method,
                other => return Err(unexpected("method", "a string", &other)),
            },
            params: params.unwrap_or_else(|| Value::Object(serde_json::Map::new())),
        })),
        _ => Err("it is neither {hello} nor {id, method, params}".to_owned()),
    }
}

fn unexpected(field: &str, wanted: &str, got: &Value) -> String {
    format!("{field}: expected {wanted}, not {}", kind_of(got))
}

impl Serialize for ClientFrame {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct HelloFrame<'a> {
            hello: &'a Hello,
        }
        #[derive(Serialize)]
        struct RequestFrame<'a> {
            id: u64,
            method: &'a str,
            params: &'a Value,
        }
        match self {
            Self::Hello(hello) => HelloFrame { hello }.serialize(serializer),
            Self::Request(Request { id, method, params }) => RequestFrame {
                id: *id,
                method,
                params,
            }
            .serialize(serializer),
        }
    }
}
