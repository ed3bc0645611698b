package services;

import dev.restate.sdk.Context;
import dev.restate.sdk.DurableFuture;
import dev.restate.sdk.annotation.Handler;
import dev.restate.sdk.annotation.Name;
import dev.restate.sdk.annotation.Service;
import dev.restate.sdk.common.TerminalException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import services.Payloads.Race;
import services.Payloads.Say;
import services.Payloads.Step;

/** What other services call, and what is counted. */
@Service
@Name("JavaUtils")
public class Utils {
  @Handler
  public String say(Context ctx, Say in) {
    if (in.millis() > 0) {
      ctx.sleep(Duration.ofMillis(in.millis()));
    }
    if (!in.id().isEmpty()) {
      ctx.run(
          "say",
          () -> {
            Recorder.record(in.id(), in.value());
            Recorder.await(in.gate());
          });
    }
    if (in.code() != 0) {
      throw new TerminalException(in.code(), in.message());
    }
    return in.value();
  }

  @Handler
  public String id(Context ctx) {
    return ctx.request().invocationId().toString();
  }

  @Handler
  public int effects(Context ctx, Step in) {
    List<DurableFuture<Integer>> steps = new ArrayList<>();
    for (int i = 0; i < in.n(); i++) {
      String value = Integer.toString(i);
      steps.add(
          ctx.runAsync(
              Integer.class,
              () -> {
                Recorder.record(in.id(), value);
                return 1;
              }));
    }
    if (steps.isEmpty()) {
      return 0;
    }
    // The SDK runs a step only when something waits for it: this waits for all.
    DurableFuture.all(List.copyOf(steps)).await();
    return steps.stream().mapToInt(DurableFuture::await).sum();
  }

  @Handler
  public int sleeps(Context ctx, Race in) {
    var timers = timers(ctx, in);
    if (!timers.isEmpty()) {
      DurableFuture.all(timers).await();
    }
    return timers.size();
  }

  /** Starts all sleeps. */
  static List<DurableFuture<?>> timers(Context ctx, Race in) {
    List<DurableFuture<?>> timers = new ArrayList<>();
    in.millis().forEach(ms -> timers.add(ctx.timer(Duration.ofMillis(ms))));
    return timers;
  }
}
