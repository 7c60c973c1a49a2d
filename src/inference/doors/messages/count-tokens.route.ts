import type { Context } from "hono";
import { fail } from "../../../http/context.ts";
import type { AppEnv } from "../../../http/context.ts";
import { BODY_BYTES_MAX, readJson } from "../../../http/read-json.ts";
import { success } from "../../../lib/failure.ts";
import type { Result } from "../../../lib/failure.ts";
import { resolveModel } from "../../../catalog/catalog.ts";
import type { Model } from "../../../catalog/model.ts";
import { parseChatRequest } from "../../core-request.ts";
import { chatPromptSize } from "../../hold-bounds.ts";
import { deploymentOf } from "../../deployment.ts";
import { promptOf } from "./convert.ts";
import { Losses } from "./losses.ts";
import { versionOf } from "./messages.ts";
import { betasIn, nativeOf } from "./native.ts";
import { parseCount } from "./request.ts";
import type { CountBody } from "./request.ts";

/** What an estimate is raised by: a client that counts too little compacts too late. */
const RAISED = 1.1;
/** A client that waits longer counts by itself. */
const UPSTREAM_MS = 3000;

/**
 * POST /v1/messages/count_tokens: `{ input_tokens }`, by the upstream's own counter where it speaks this
 * dialect, else our estimate rounded up by a tenth; never 0. Free, and nothing is held.
 */
export async function countTokensRoute(c: Context<AppEnv>): Promise<Response> {
  const counted = await count(c);
  return counted.ok ? c.json({ input_tokens: counted.value }) : fail(c, counted.failure);
}

async function count(c: Context<AppEnv>): Promise<Result<number>> {
  const version = versionOf({ header: (name) => c.req.header(name), query: () => undefined });
  if (!version.ok) return version;
  const { numbers } = c.var.config;
  const read = await readJson(c.req.raw, {
    bytesMax: BODY_BYTES_MAX,
    timeoutMs: numbers.BODY_TIMEOUT_MS,
  });
  if (!read.ok) return read;
  const parsed = parseCount(read.value);
  if (!parsed.ok) return parsed;
  const body = parsed.value;
  const { catalog } = deploymentOf(c.var.config);
  const resolved = resolveModel(catalog, body.model, "chat");
  if (!resolved.ok) return resolved;
  const estimate = estimated(body, resolved.value);
  if (!estimate.ok) return estimate;
  const said = await upstreamCount(c, body, resolved.value);
  return success(said ?? estimate.value);
}

function estimated(body: CountBody, model: Model): Result<number> {
  const losses = new Losses();
  const prompt = promptOf(body, losses);
  if (!prompt.ok) return prompt;
  const core = parseChatRequest({ model: body.model, ...prompt.value });
  if (!core.ok) return core;
  const { likely } = chatPromptSize(core.value, model);
  return success(Math.max(1, Math.ceil((likely + losses.moreTokens) * RAISED)));
}

/** What the first route of this dialect counts; null without one, or where it does not say in time. */
async function upstreamCount(
  c: Context<AppEnv>,
  body: CountBody,
  model: Model,
): Promise<number | null> {
  const { providers } = deploymentOf(c.var.config);
  const native = nativeOf(body, betasIn(c.req.header("anthropic-beta")));
  if (!native.ok) return null;
  const { betas } = native.value;
  const headers = betas.length === 0 ? {} : { "anthropic-beta": betas.join(",") };
  for (const { provider: id, upstreamId } of model.routes) {
    const provider = providers.get(id);
    if (provider?.countTokens === undefined) continue;
    if (provider.speaks?.("messages", upstreamId) !== true) continue;
    const asked = { body: native.value.body, headers };
    return provider.countTokens(upstreamId, asked, AbortSignal.timeout(UPSTREAM_MS));
  }
  return null;
}
