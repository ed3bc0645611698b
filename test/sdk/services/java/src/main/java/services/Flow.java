package services;

import dev.restate.sdk.SharedWorkflowContext;
import dev.restate.sdk.WorkflowContext;
import dev.restate.sdk.annotation.Handler;
import dev.restate.sdk.annotation.Name;
import dev.restate.sdk.annotation.Shared;
import dev.restate.sdk.annotation.Workflow;
import dev.restate.sdk.common.DurablePromiseKey;
import dev.restate.sdk.common.StateKey;
import dev.restate.sdk.common.TerminalException;
import java.util.ArrayList;
import java.util.List;
import services.Payloads.Completion;
import services.Payloads.Failure;
import services.Payloads.OpResult;
import services.Payloads.Outcome;

/** A workflow and its durable promises. */
@Workflow
@Name("JavaFlow")
public class Flow {
  private static final StateKey<Integer> GOT = StateKey.of("got", Integer.class);

  @Workflow
  public List<String> run(WorkflowContext ctx, Payloads.Flow in) {
    Recorder.tell(ctx, "run", in.id(), "run");
    ctx.set(Store.text("text"), in.text());
    List<String> values = new ArrayList<>();
    for (String name : in.promises()) {
      values.add(ctx.promise(key(name)).future().await());
      ctx.set(GOT, values.size());
    }
    return values;
  }

  @Handler
  @Shared
  public String await(SharedWorkflowContext ctx, String promise) {
    return ctx.promise(key(promise)).future().await();
  }

  @Handler
  @Shared
  public Outcome peek(SharedWorkflowContext ctx, String promise) {
    try {
      var output = ctx.promise(key(promise)).peek();
      return output.isReady() ? Outcome.value(output.getValue()).at(1) : Outcome.EMPTY;
    } catch (TerminalException e) {
      return Outcome.error(e.getCode(), e.getMessage()).at(1);
    }
  }

  @Handler
  @Shared
  public Failure complete(SharedWorkflowContext ctx, Completion in) {
    var promise = ctx.promiseHandle(key(in.promise()));
    return Results.caught(
        () -> {
          if (in.reject().isEmpty()) {
            promise.resolve(in.value());
          } else {
            promise.reject(in.reject());
          }
        });
  }

  @Handler
  @Shared
  public OpResult text(SharedWorkflowContext ctx) {
    return Store.get(ctx, "text");
  }

  private static DurablePromiseKey<String> key(String name) {
    return DurablePromiseKey.of(name, String.class);
  }
}
