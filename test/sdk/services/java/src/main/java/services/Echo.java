package services;

import dev.restate.sdk.Context;
import dev.restate.sdk.annotation.Accept;
import dev.restate.sdk.annotation.Handler;
import dev.restate.sdk.annotation.Name;
import dev.restate.sdk.annotation.Raw;
import dev.restate.sdk.annotation.Service;
import services.Payloads.Message;

/** Inputs and outputs: JSON, bytes, none, headers. */
@Service
@Name("JavaEcho")
public class Echo {
  @Handler
  public Message json(Context ctx, Message in) {
    return in;
  }

  @Handler
  @Raw
  public byte[] bytes(Context ctx, @Accept("*/*") @Raw byte[] in) {
    return in;
  }

  @Handler
  public void nothing(Context ctx) {}

  @Handler
  public String header(Context ctx, String name) {
    for (var header : ctx.request().headers().entrySet()) {
      if (header.getKey().equalsIgnoreCase(name)) {
        return header.getValue();
      }
    }
    return "";
  }
}
