import type { Served } from "../providers/failover.ts";
import { answerJson } from "./answer-json.ts";
import { answerStream } from "./answer-stream.ts";
import type { Ended, Run, ServingRoute } from "./paid-request.ts";

/** Gives the client all but the last byte of what a route answers, in its door's shape. */
export function answer(
  run: Run,
  route: ServingRoute,
  given: Served["answer"],
): Promise<Ended> | Ended {
  const { native } = run.request;
  const reply = route.isNative && native !== null ? native.reply : run.request.reply;
  if (given.kind === "json" && reply.kind === "json") {
    return answerJson(run, route, { answer: given, reply });
  }
  if (given.kind === "stream" && reply.kind === "stream") {
    return answerStream(run, route, { events: given.events, reply });
  }
  throw new Error("an answer of another kind than was asked for");
}
