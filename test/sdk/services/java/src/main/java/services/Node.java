package services;

import dev.restate.sdk.DurableFuture;
import dev.restate.sdk.common.TerminalException;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Supplier;
import services.Payloads.Outcome;

/**
 * Something to await: a future of the SDK, or a combination for which the SDK has none.
 *
 * <p>The SDK combines futures into one that ends with the first to end (any) or with all or the
 * first failure (all). What waits for the first success is put together here, and so is everything
 * that contains it: wait for one of the futures that are still open, and look again.
 */
final class Node {
  private final String kind; // of a combination
  private final List<Node> parts;
  private final List<Integer> ended = new ArrayList<>(); // parts, in the order they ended

  private final DurableFuture<?> future; // null if the SDK has none
  private final Supplier<Outcome> result; // of the future, which has ended
  private Outcome done;

  private Node(String kind, List<Node> parts, DurableFuture<?> future, Supplier<Outcome> result) {
    this.kind = kind;
    this.parts = parts;
    this.future = future;
    this.result = result;
  }

  /** A single future. */
  static Node of(DurableFuture<String> future) {
    return new Node("", List.of(), future, () -> Results.outcome(future));
  }

  /** A timer. */
  static Node timer(DurableFuture<Void> timer) {
    return new Node(
        "",
        List.of(),
        timer,
        () -> {
          timer.await();
          return Outcome.value("slept");
        });
  }

  /** A combination: all, settled, any or first. */
  static Node combine(String kind, List<Node> parts) {
    if (parts.isEmpty() || parts.stream().anyMatch(p -> p.future == null)) {
      return new Node(kind, parts, null, null);
    }
    List<DurableFuture<?>> futures = new ArrayList<>();
    parts.forEach(p -> futures.add(p.future));
    return switch (kind) {
      case "first" -> {
        DurableFuture<Integer> first = DurableFuture.any(futures);
        yield new Node(
            kind, parts, first, () -> Outcome.one(first.await(), parts.get(first.await()).take()));
      }
      case "all", "settled" -> {
        DurableFuture<Void> all =
            DurableFuture.all(kind.equals("all") ? futures : futures.stream().map(f -> whatever(f)).toList());
        yield new Node(
            kind,
            parts,
            all,
            () -> {
              all.await();
              return Outcome.all(parts.stream().map(Node::take).toList());
            });
      }
      default -> new Node(kind, parts, null, null);
    };
  }
}
