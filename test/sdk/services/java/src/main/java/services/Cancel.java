package services;

import dev.restate.common.Request;
import dev.restate.common.Target;
import dev.restate.sdk.DurableFuture;
import dev.restate.sdk.ObjectContext;
import dev.restate.sdk.annotation.Handler;
import dev.restate.sdk.annotation.Name;
import dev.restate.sdk.annotation.VirtualObject;
import dev.restate.sdk.common.TerminalException;
import dev.restate.serde.TypeTag;
import java.io.IOException;
import java.time.Duration;
import services.Payloads.Block;
import services.Payloads.Failure;

/** Cancellation in every kind of await. */
@VirtualObject
@Name("JavaCancel")
public class Cancel {
  private static final Duration LONG = Duration.ofHours(1);

  @Handler
  public String ping(ObjectContext ctx) {
    return "pong";
  }

  @Handler
  public Failure block(ObjectContext ctx, Block in) throws IOException, InterruptedException {
    Recorder.record(in.id(), "blocked");
    try {
      await(ctx, in, child(in));
    } catch (TerminalException e) {
      Recorder.tell(ctx, "undo", in.id() + "-undone", Integer.toString(e.getCode()));
      if (in.caught()) {
        return Results.failure(e);
      }
      throw e;
    }
    throw new Deliberate("nothing was waited for");
  }

  /** Waits in the way that the input names. */
  private static void await(ObjectContext ctx, Block in, Request<Block, Failure> child) {
    switch (in.in()) {
      case "sleep" -> ctx.sleep(LONG);
      case "awakeable" -> ctx.awakeable(String.class).await();
      case "call" -> ctx.call(child).await();
      case "attach" -> ctx.send(child).attach().await();
      case "send" -> {
        ctx.send(child);
        ctx.sleep(LONG);
      }
      case "combined" ->
          DurableFuture.any(ctx.timer(LONG), ctx.awakeable(String.class), ctx.call(child)).await();
      case "run" ->
          ctx.run(
              "never",
              Policies.step().setMaxDelay(Duration.ofSeconds(1)),
              () -> {
                Recorder.record(in.id() + "-try", "try");
                throw new Deliberate("never works");
              });
      default -> throw new Deliberate("unknown way to wait: " + in.in());
    }
  }

  private static Request<Block, Failure> child(Block in) {
    return Request.of(
            Target.virtualObject("JavaCancel", in.child(), "block"),
            TypeTag.of(Block.class),
            TypeTag.of(Failure.class),
            new Block(in.id() + "-child", "awakeable", "", false))
        .build();
  }
}
