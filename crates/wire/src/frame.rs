//! What a client sends.

use crate::handshake::Hello;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use serde_json::Value;

/// A frame of a client.
#[derive(Debug, Clone, PartialEq)]
pub enum ClientFrame {
    /// The first one.
    Hello(Hello),
    /// Every other one.
    Request(Request),
}

/// A method to run.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// The client's number for the answer.
    pub id: u64,
    /// For example `session.create`.
    pub method: String,
    /// The parameters: a map.
    pub params: Value,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Flat {
    hello: Option<Hello>,
    id: Option<u64>,
    method: Option<String>,
    params: Option<Value>,
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

impl<'de> Deserialize<'de> for ClientFrame {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Flat::deserialize(deserializer)? {
            Flat {
                hello: Some(hello),
                id: None,
                method: None,
                ..
            } => Ok(Self::Hello(hello)),
            Flat {
                hello: None,
                id: Some(id),
                method: Some(method),
                params,
            } => {
                let params = params.unwrap_or_else(|| Value::Object(serde_json::Map::new()));
                Ok(Self::Request(Request { id, method, params }))
            }
            _ => Err(D::Error::custom("neither hello nor {id, method, params}")),
        }
    }
}
