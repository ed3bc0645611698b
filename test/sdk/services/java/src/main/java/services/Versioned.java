package services;

import dev.restate.sdk.Awakeable;
import dev.restate.sdk.ObjectContext;
import dev.restate.sdk.SharedObjectContext;
import dev.restate.sdk.annotation.Handler;
import dev.restate.sdk.annotation.Name;
import dev.restate.sdk.annotation.Shared;
import dev.restate.sdk.annotation.VirtualObject;
import dev.restate.sdk.common.TerminalException;
import java.util.List;
import services.Payloads.Step;
import services.Payloads.Versions;

/** Work that is in flight while another version is deployed. */
@VirtualObject
@Name("JavaVersioned")
public class Versioned {
  private static final String VERSION = Main.env("VERSION").isEmpty() ? "v1" : Main.env("VERSION");

  @Handler
  @Shared
  public String version(SharedObjectContext ctx) {
    return VERSION;
  }

  @Handler
  public Versions work(ObjectContext ctx, Step in) {
    String before = link(ctx, in.id(), "before");
    Awakeable<String> awakeable = ctx.awakeable(String.class);
    Recorder.tell(ctx, "publish", in.id(), awakeable.id());
    awakeable.await();
    return new Versions(before, VERSION);
  }

  @Handler
  public String chain(ObjectContext ctx, Step in) {
    var links = List.of(link(ctx, in.id(), "a"), link(ctx, in.id(), "b"), link(ctx, in.id(), "c"));
    if (VERSION.equals("v1") && in.fail() != 0) {
      throw new TerminalException("broken in v1");
    }
    return String.join(",", links);
  }

  /** Runs a step that records and gives the version. */
  private static String link(ObjectContext ctx, String id, String name) {
    return ctx.run(
        name,
        String.class,
        () -> {
          Recorder.record(id + "-" + name, VERSION);
          return VERSION;
        });
  }
}
