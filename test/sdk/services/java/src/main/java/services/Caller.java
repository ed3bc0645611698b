package services;

import dev.restate.sdk.CallDurableFuture;
import dev.restate.sdk.Context;
import dev.restate.sdk.DurableFuture;
import dev.restate.sdk.annotation.Handler;
import dev.restate.sdk.annotation.Name;
import dev.restate.sdk.annotation.Service;
import dev.restate.sdk.common.TerminalException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import services.Payloads.Call;
import services.Payloads.Failure;
import services.Payloads.Outcome;
import services.Payloads.Race;
import services.Payloads.Timeout;

/** Calls, sends and waiting for several things at once. */
@Service
@Name("JavaCaller")
public class Caller {
  @Handler
  public Object call(Context ctx, Call in) {
    return Requests.start(ctx, in).await();
  }

  @Handler
  public String send(Context ctx, Call in) {
    var request = Requests.request(in);
    var sent =
        in.delayMillis() > 0
            ? ctx.send(request, Duration.ofMillis(in.delayMillis()))
            : ctx.send(request);
    return sent.invocationId();
  }

  @Handler
  @Name("catch")
  public Failure caught(Context ctx, Call in) {
    return Results.caught(Requests.start(ctx, in)::await);
  }

  @Handler
  public List<Object> fanout(Context ctx, List<Call> in) {
    var calls = start(ctx, in);
    if (!calls.isEmpty()) {
      DurableFuture.all(List.copyOf(calls)).await();
    }
    List<Object> answers = new ArrayList<>();
    calls.forEach(call -> answers.add(call.await()));
    return answers;
  }

  @Handler
  public List<Failure> settle(Context ctx, List<Call> in) {
    // In the order they end, so that not only the first is ever waited for.
    var calls = start(ctx, in);
    List<DurableFuture<?>> open = new ArrayList<>(calls);
    while (!open.isEmpty()) {
      open.remove(DurableFuture.any(open).await().intValue());
    }
    return calls.stream().map(call -> Results.caught(call::await)).toList();
  }

  private static List<CallDurableFuture<Object>> start(Context ctx, List<Call> in) {
    return in.stream().map(call -> Requests.start(ctx, call)).toList();
  }

  @Handler
  public int race(Context ctx, Race in) {
    return DurableFuture.any(Utils.timers(ctx, in)).await();
  }

  @Handler
  public boolean timeout(Context ctx, Timeout in) {
    var answer = Requests.start(ctx, in.call());
    var limit = ctx.timer(Duration.ofMillis(in.millis()));
    return DurableFuture.any(answer, limit).await() == 0;
  }

  @Handler
  public void cancel(Context ctx, String id) {
    ctx.invocationHandle(id).cancel();
  }

  @Handler
  public Object attach(Context ctx, String id) {
    return ctx.invocationHandle(id, AnyJson.SERDE).attach().await();
  }

  @Handler
  public Outcome output(Context ctx, String id) {
    try {
      var output = ctx.invocationHandle(id, String.class).getOutput();
      return output.isReady() ? Outcome.value(output.getValue()).at(1) : Outcome.EMPTY;
    } catch (TerminalException e) {
      return Outcome.error(e.getCode(), e.getMessage()).at(1);
    }
  }

  @Handler
  public Failure catchAttach(Context ctx, String id) {
    return Results.caught(ctx.invocationHandle(id, AnyJson.SERDE).attach()::await);
  }
}
