//! What a program has begun: awaitables, and combinators of them in any depth.

use std::pin::Pin;

use restate_sdk::context::DurableFuture;
use restate_sdk::prelude::*;

use crate::awaits::Outcome;

/// A future of the SDK for one entry of the journal.
pub type Awaitable<'ctx> = Pin<Box<dyn DurableFuture<Output = Result<String, TerminalError>> + Send + 'ctx>>;

/// Everything that was begun, by number, whether it has ended or not.
#[derive(Default)]
pub struct Nodes<'ctx> {
    nodes: Vec<Node<'ctx>>,
    /// What combinators wait for. A future cannot leave it but by ending, so those
    /// that a combinator did not need stay for whoever awaits them next.
    futures: DurableFuturesUnordered<Awaitable<'ctx>>,
    /// The node of each that was ever put into `futures`.
    owners: Vec<usize>,
}

struct Node<'ctx> {
    /// The future of a leaf that no combinator has waited for yet.
    future: Option<Awaitable<'ctx>>,
    combinator: Option<Combinator>,
    parts: Vec<usize>,
    /// Set once, when it is decided.
    outcome: Option<Outcome>,
}

/// How the outcomes of several become one.
#[derive(Clone, Copy)]
pub enum Combinator {
    All,
    Settled,
    Any,
    First,
}

impl<'ctx> Nodes<'ctx> {
    /// Adds something to be awaited.
    pub fn leaf(&mut self, future: Awaitable<'ctx>) -> usize {
        self.add(Node { future: Some(future), combinator: None, parts: Vec::new(), outcome: None })
    }

    /// Adds something that has ended already.
    pub fn ended(&mut self, outcome: Outcome) -> usize {
        self.add(Node { future: None, combinator: None, parts: Vec::new(), outcome: Some(outcome) })
    }

    /// Adds a combinator of what was added before.
    pub fn combined(&mut self, combinator: Combinator, parts: Vec<usize>) -> usize {
        self.add(Node { future: None, combinator: Some(combinator), parts, outcome: None })
    }

    fn add(&mut self, node: Node<'ctx>) -> usize {
        self.nodes.push(node);
        self.nodes.len() - 1
    }

    /// Waits until the node is decided; the error is a cancellation.
    pub async fn end(&mut self, node: usize) -> Result<Outcome, TerminalError> {
        if let Some(future) = self.nodes[node].future.take() {
            self.nodes[node].outcome = Some(future.await.into());
        }
        self.enlist(node);
        loop {
            if let Some(outcome) = self.decide(node) {
                return Ok(outcome);
            }
            let Some((i, result)) = self.futures.next().await? else {
                return Err(TerminalError::new("there is nothing to wait for"));
            };
            self.nodes[self.owners[i]].outcome = Some(result.into());
        }
    }

    /// Puts the futures of all leaves below the node where they are awaited at once.
    fn enlist(&mut self, node: usize) {
        if let Some(future) = self.nodes[node].future.take() {
            self.futures.push(future);
            self.owners.push(node);
        }
        for part in self.nodes[node].parts.clone() {
            self.enlist(part);
        }
    }

    /// Returns the outcome if there is enough to tell it. All parts are decided
    /// first, so that none changes its mind when more of them end.
    fn decide(&mut self, node: usize) -> Option<Outcome> {
        if self.nodes[node].outcome.is_none()
            && let Some(combinator) = self.nodes[node].combinator
        {
            let parts = self.nodes[node].parts.clone();
            let outcomes: Vec<_> = parts.into_iter().map(|part| self.decide(part)).collect();
            self.nodes[node].outcome = combinator.combine(outcomes);
        }
        self.nodes[node].outcome.clone()
    }
}

impl Combinator {
    fn combine(self, outcomes: Vec<Option<Outcome>>) -> Option<Outcome> {
        let find = |wanted: fn(&Outcome) -> bool| {
            let ended = outcomes.iter().enumerate().filter_map(|(i, o)| o.as_ref().map(|o| (i, o)));
            ended.filter(|(_, o)| wanted(o)).map(|(i, o)| (i, o.clone())).next()
        };
        let early = match self {
            Self::All => find(Outcome::failed).map(|(_, o)| o),
            Self::Any => find(|o| !o.failed()).map(|(i, o)| Outcome::one(i, o)),
            Self::First => find(|_| true).map(|(i, o)| Outcome::one(i, o)),
            Self::Settled => None,
        };
        if early.is_some() {
            return early;
        }
        let of = outcomes.into_iter().collect::<Option<Vec<_>>>()?;
        Some(match self {
            Self::Any => Outcome { code: 500, message: "all have failed".to_owned(), of, ..Outcome::default() },
            _ => Outcome { of, ..Outcome::default() },
        })
    }
}
