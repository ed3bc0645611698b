package services;

import dev.restate.sdk.Context;
import dev.restate.sdk.annotation.Handler;
import dev.restate.sdk.annotation.Name;
import dev.restate.sdk.annotation.Service;
import java.io.IOException;
import services.Payloads.Step;

/** Is paused after three attempts, by its retry policy. */
@Service
@Name("JavaPaused")
public class Paused {
  @Handler
  public int work(Context ctx, Step in) throws IOException, InterruptedException {
    return Recorder.attempt(in.id(), "attempt", in.fail());
  }
}
