package services;

import dev.restate.sdk.DurableFuture;
import dev.restate.sdk.common.TerminalException;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;
import services.Payloads.Outcome;

/**
 * Something to await: a future of the SDK, or a combination for which the SDK has none.
 *
 * <p>The SDK makes a future of several that ends with the first of them (here "first"), or with all
 * of them or the first failure ("all"). What else there is, and everything that contains it, is
 * awaited by waiting for one of the futures that are still open, as often as it takes.
 */
final class Node {
  private final String kind; // of a combination
  private final List<Node> parts;
  private final DurableFuture<?> future; // null if the SDK has none
  private final Function<Object, Outcome> result; // of what the future gave

  private final List<Integer> ended = new ArrayList<>(); // parts, in the order they ended
  private Outcome done;

  private Node(
      String kind,
      List<Node> parts,
      DurableFuture<?> future,
      Function<Object, Outcome> result) {
    this.kind = kind;
    this.parts = parts;
    this.future = future;
    this.result = result;
  }

  /** One future, and what it tells when it succeeds. */
  static Node of(DurableFuture<?> future, Function<Object, String> text) {
    return new Node("", List.of(), future, v -> Outcome.value(text.apply(v)));
  }

  /** A combination: all, settled, any or first. */
  static Node combine(String kind, List<Node> parts) {
    List<DurableFuture<?>> futures = new ArrayList<>();
    parts.stream().filter(p -> p.future != null).forEach(p -> futures.add(p.future));
    if (!parts.isEmpty() && futures.size() == parts.size()) {
      if (kind.equals("first")) {
        return new Node(kind, parts, DurableFuture.any(futures), i -> one(parts, (int) i));
      }
      if (kind.equals("all")) {
        return new Node(kind, parts, DurableFuture.all(futures), v -> every(parts));
      }
    }
    return new Node(kind, parts, null, null);
  }

  /** Waits until the node is decided. */
  Outcome await() {
    while (!decide()) {
      List<Node> open = new ArrayList<>();
      open(open);
      List<DurableFuture<?>> futures = new ArrayList<>();
      open.forEach(n -> futures.add(n.future));
      open.get(futures.size() == 1 ? 0 : DurableFuture.any(futures).await()).take();
    }
    return done;
  }

  /** Collects the futures that may still matter. */
  private void open(List<Node> to) {
    if (done != null) {
      return;
    }
    if (future != null) {
      to.add(this);
    } else {
      parts.forEach(p -> p.open(to));
    }
  }

  /** Keeps the result of the future. */
  private Outcome take() {
    if (done == null) {
      try {
        done = result.apply(future.await());
      } catch (TerminalException e) {
        done = Outcome.error(e.getCode(), e.getMessage());
      }
    }
    return done;
  }

  /** Tells whether the node is decided by what has ended. */
  private boolean decide() {
    for (int i = 0; i < parts.size() && future == null && done == null; i++) {
      if (!ended.contains(i) && parts.get(i).decide()) {
        ended.add(i);
      }
    }
    if (future == null && done == null) {
      done = combined();
    }
    return done != null;
  }

  /** Applies the rule of the combination to the parts that have ended; null is undecided. */
  private Outcome combined() {
    for (int i : ended) {
      Outcome o = parts.get(i).done;
      if (kind.equals("first") || kind.equals("any") && o.code() == 0) {
        return Outcome.one(i, o);
      }
      if (kind.equals("all") && o.code() != 0) {
        return o;
      }
    }
    if (ended.size() < parts.size()) {
      return null;
    }
    Outcome all = every(parts);
    return kind.equals("any") ? new Outcome(null, 500, "all failed", 0, all.of()) : all;
  }

  private static Outcome one(List<Node> parts, int i) {
    return Outcome.one(i, parts.get(i).take());
  }

  private static Outcome every(List<Node> parts) {
    return Outcome.all(parts.stream().map(Node::take).toList());
  }
}
