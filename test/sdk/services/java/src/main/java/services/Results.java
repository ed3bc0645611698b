package services;

import dev.restate.sdk.DurableFuture;
import dev.restate.sdk.common.TerminalException;
import services.Payloads.Failure;
import services.Payloads.Outcome;

/** Turns what was awaited into answers. */
final class Results {
  private Results() {}

  /** Describes a terminal error that a handler handles itself. */
  static Failure failure(TerminalException e) {
    return new Failure(e.getCode(), e.getMessage());
  }

  /** Does something and returns the terminal error that it ended with, if any. */
  static Failure caught(Runnable action) {
    try {
      action.run();
      return Failure.NONE;
    } catch (TerminalException e) {
      return failure(e);
    }
  }

  /** Waits for a text or a terminal error. */
  static Outcome outcome(DurableFuture<String> future) {
    try {
      return Outcome.value(future.await());
    } catch (TerminalException e) {
      return Outcome.error(e.getCode(), e.getMessage());
    }
  }
}
