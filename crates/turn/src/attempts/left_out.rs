//! Finds the items of a request that a provider refuses, and leaves them out of later requests. Pure.
//!
//! Flow: the refusal names an item, or the likeliest ones are left out, then half of the other suspects, and so on, as if
//! one item were the cause. Before the budget ends, all suspects are left out. An answer proves that the cause is among
//! those that are left out; from then on each call sends half of them, until only refused ones are left.

use agentd_protocol::{RefusedItem, RequestItem};
use serde::Serialize;
use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

/// The most items that are kept, so that a session's state stays bounded.
const REMEMBERED: usize = 256;

/// The items of the next request that a provider can refuse one by one, each kind in the order of the request.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Items {
    /// The images, each with the index of its message.
    pub images: Vec<(RequestItem, u64)>,
    /// The tools.
    pub tools: Vec<RequestItem>,
}

/// The items that are not sent to a model because its provider refuses them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct LeftOut {
    /// All items that are not sent.
    pub items: BTreeSet<RequestItem>,
    /// The suspects: at least one of them is refused, while it is not known which. Some of them may be sent.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub among: Vec<RequestItem>,
    /// The model answered without the suspects, so no other item is refused.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub proven: bool,
}

impl LeftOut {
    /// Applies a remedy: these items are left out, and these are the suspects.
    pub(crate) fn replace(&mut self, items: &[RequestItem], among: &[RequestItem]) {
        let narrower = among.iter().all(|item| self.among.contains(item));
        self.proven &= narrower && !among.is_empty();
        self.items = items.iter().cloned().collect();
        self.among = among.to_vec();
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.items.is_empty() && self.among.is_empty()
    }

    /// Identifies the items: the same number means that the same ones are left out.
    pub(crate) fn id(&self) -> u64 {
        if self.items.is_empty() {
            return 0;
        }
        let mut hasher = DefaultHasher::new();
        self.items.hash(&mut hasher);
        hasher.finish()
    }

    /// The items to leave out after a refusal; none: no item that was sent can be the cause. `last`: no further attempt is
    /// left, so all suspects go.
    pub(crate) fn after(&self, refused: &RefusedItem, items: &Items, last: bool) -> Option<Self> {
        match refused {
            RefusedItem::Image { message } => {
                let images = items.images.iter().filter(|(item, _)| self.sends(item));
                let at = |message: u64| images.clone().any(|(_, at)| *at == message).then_some(message);
                // The provider may count other messages than we do: this only decides who is suspected first. The request
                // before this one was accepted, so the newest message is the likeliest.
                let likely = message
                    .and_then(at)
                    .or(images.clone().next_back().map(|(_, at)| *at));
                let first = images.clone().filter(|(_, at)| Some(*at) == likely);
                let first = first.map(|(item, _)| item.clone()).collect();
                self.narrowed(images.map(|(item, _)| item.clone()).collect(), first, last)
            }
            RefusedItem::Tool { name, index } => {
                let tools = items.tools.iter().filter(|item| self.sends(item));
                if let Some(name) = name {
                    let named = tools.clone().find(|item| is_named(item, name))?;
                    return Some(self.with(named.clone()));
                }
                let named = index.and_then(|index| tools.clone().nth(usize::try_from(index).ok()?));
                let first = named.or(tools.clone().next_back()).into_iter().cloned().collect();
                self.narrowed(tools.cloned().collect(), first, last)
            }
        }
    }

    fn sends(&self, item: &RequestItem) -> bool {
        !self.items.contains(item)
    }

    fn with(&self, item: RequestItem) -> Self {
        let mut next = self.clone();
        next.items.insert(item);
        next
    }

    /// A request with these items was refused, so one of them is the cause. `first`: the likeliest ones.
    fn narrowed(&self, sent: Vec<RequestItem>, first: Vec<RequestItem>, last: bool) -> Option<Self> {
        let known = |item: &RequestItem| self.among.contains(item);
        let suspects: Vec<RequestItem> = sent.iter().filter(|item| known(item)).cloned().collect();
        let kept = |among: &[RequestItem]| -> BTreeSet<RequestItem> {
            let known = self.items.iter().filter(|item| !among.contains(item));
            known.cloned().collect()
        };
        if sent.is_empty() {
            return None;
        }
        if last {
            return Some(self.with_all(kept(&[]), if self.proven { self.among.clone() } else { sent }));
        }
        Some(match suspects.as_slice() {
            // The search begins, or it blamed the wrong items.
            [] if first.len() == sent.len() && first.len() == 1 => self.found(kept(&[]), first),
            [] => Self {
                items: bounded(kept(&[]).into_iter().chain(first).collect()),
                among: sent,
                proven: false,
            },
            [_] if self.proven => {
                let mut rest = self.with_all(kept(&[]), self.among.clone());
                rest.among.retain(|item| !suspects.contains(item));
                rest
            }
            [_] => self.found(kept(&self.among), suspects),
            more if self.proven => {
                let (older, _) = more.split_at(more.len().div_ceil(2));
                let mut next = self.with_all(kept(&[]), self.among.clone());
                next.items.retain(|item| !older.contains(item));
                next
            }
            more => {
                let (_, newer) = more.split_at(more.len().div_ceil(2));
                Self {
                    items: bounded(
                        kept(&self.among)
                            .into_iter()
                            .chain(newer.iter().cloned())
                            .collect(),
                    ),
                    among: suspects,
                    proven: false,
                }
            }
        })
    }

    /// All suspects are left out.
    fn with_all(&self, mut items: BTreeSet<RequestItem>, among: Vec<RequestItem>) -> Self {
        items.extend(among.iter().cloned());
        Self {
            items: bounded(items),
            among,
            proven: self.proven,
        }
    }

    /// These are refused, and no others are suspected.
    fn found(&self, items: BTreeSet<RequestItem>, found: Vec<RequestItem>) -> Self {
        Self {
            among: Vec::new(),
            ..self.with_all(items, found)
        }
    }

    /// The model answered without these items: the cause is among the suspects that were left out.
    pub(crate) fn answered(&mut self) {
        let items = &self.items;
        self.among.retain(|item| items.contains(item));
        // A suspect that remained because others were found to be refused may be innocent.
        if self.among.len() == 1 && !self.proven {
            self.among.clear();
        }
        self.proven = !self.among.is_empty();
    }

    /// A new call begins: it sends half of the suspects that were left out, because most of them are innocent.
    pub(crate) fn begin(&mut self) {
        let all_out = self.among.iter().all(|item| self.items.contains(item));
        if all_out {
            let older = self.among.len().div_ceil(2);
            for item in self.among.iter().take(older) {
                self.items.remove(item);
            }
        }
    }
}

fn bounded(mut items: BTreeSet<RequestItem>) -> BTreeSet<RequestItem> {
    while items.len() > REMEMBERED {
        items.pop_first();
    }
    items
}

/// Whether a tool has this name in a request: dialects replace the characters that their servers do not accept.
fn is_named(item: &RequestItem, name: &str) -> bool {
    let plain = |text: &str| -> String {
        let fit = |one: char| if one.is_ascii_alphanumeric() { one } else { '_' };
        text.chars().map(fit).collect()
    };
    matches!(item, RequestItem::Tool { name: own } if plain(own) == plain(name))
}
