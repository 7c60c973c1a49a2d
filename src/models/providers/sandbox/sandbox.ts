import { toFailureResult } from "../../core/http-provider.ts";
import { CALL_KIND_NAMES, CALL_KINDS } from "../../../shared/kinds.ts";
import type { CallKindWithoutOutput } from "../../../shared/kinds.ts";
import type {
  ProviderCallOfKind,
  ChatCall,
  Provider,
  ProviderResult,
  ProviderCall,
  ProviderFailure,
} from "../../core/provider.ts";
import { createSandboxCompletion, toSandboxChatBody } from "./answer.ts";
import { SANDBOX_BEHAVIORS, pauseUnlessAborted, playSteps } from "./behaviors.ts";
import type { SandboxBehavior, SandboxDelays } from "./behaviors.ts";
import { SANDBOX_INPUT_RESPONSES } from "./input-answers.ts";
import type { SandboxInputResponse } from "./input-answers.ts";

const DELAYS: SandboxDelays = { firstByteMs: 1500, wordMs: 150, endlessMs: 20 };
const ABORTED: ProviderFailure = { kind: "retry", reason: "aborted" };
const UNKNOWN_MODEL: ProviderFailure = { kind: "disabled", reason: "unknown_model" };
const FAILURE_BY_MODEL: ReadonlyMap<string, ProviderFailure> = new Map<string, ProviderFailure>([
  ["status-408", { kind: "retry", reason: "408" }],
  ["status-429", { kind: "overloaded", reason: "429", retryAfterMs: 2000 }],
  ["status-500", { kind: "retry", reason: "500" }],
  ["status-503", { kind: "overloaded", reason: "503" }],
  ["echo-key-401", { kind: "disabled", reason: "401" }],
  ["html", { kind: "retry", reason: "bad_body" }],
  ["bad-json", { kind: "retry", reason: "bad_body" }],
]);

/**
 * Returns a provider that acts like a deterministic model. Each special model simulates one
 * behavior (`SANDBOX_BEHAVIORS`) or one failure (`FAILURE_BY_MODEL`).
 */
export function createSandboxProvider(options: Partial<SandboxDelays> = {}): Provider {
  const delays = { ...DELAYS, ...options };
  const send = async (call: ProviderCall): Promise<ProviderResult> => {
    if (call.signal.aborted) return toFailureResult(ABORTED);
    call.onDispatch?.();
    const fault = FAILURE_BY_MODEL.get(call.upstreamId);
    if (fault !== undefined) return toFailureResult(fault);
    if (call.kind !== "chat") return respondToInput(call);
    const behavior = SANDBOX_BEHAVIORS.get(call.upstreamId);
    if (behavior === undefined) return toFailureResult(UNKNOWN_MODEL);
    return respondToChat(call, behavior, delays);
  };
  return { id: "sandbox", kinds: CALL_KIND_NAMES, acceptsFiles: true, send };
}

function respondToInput(call: ProviderCallOfKind<CallKindWithoutOutput>): ProviderResult {
  const answer: SandboxInputResponse<CallKindWithoutOutput> = SANDBOX_INPUT_RESPONSES[call.kind];
  return call.upstreamId === CALL_KINDS[call.kind].sandbox.model
    ? answer(call)
    : toFailureResult(UNKNOWN_MODEL);
}

async function respondToChat(
  call: ChatCall,
  behavior: SandboxBehavior,
  delays: SandboxDelays,
): Promise<ProviderResult> {
  const usual = createSandboxCompletion(call, behavior.mode);
  if ("kind" in usual) return toFailureResult(usual);
  const answer = behavior.modifyAnswer?.(usual, call.cap) ?? usual;
  if (call.stream) {
    return { kind: "stream", events: playSteps(behavior.stream(answer, delays), call.signal) };
  }
  const outcome = behavior.json?.(delays) ?? 0;
  if (typeof outcome !== "number") return toFailureResult(outcome);
  if (outcome > 0) await pauseUnlessAborted(outcome, call.signal);
  if (call.signal.aborted) return toFailureResult(ABORTED);
  return { kind: "json", body: toSandboxChatBody(answer), usage: answer.usage };
}
