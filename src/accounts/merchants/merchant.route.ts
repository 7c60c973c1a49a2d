import type { Next } from "hono";
import { now } from "../../shared/clock.ts";
import type { PlacedHold } from "../../shared/contracts/holds.ts";
import { refuse, success } from "../../shared/failure.ts";
import type { Result } from "../../shared/failure.ts";
import { fail } from "../../shared/http/context.ts";
import type { AppContext } from "../../shared/http/context.ts";
import { respond } from "../../shared/http/endpoint.ts";
import { parseHoldName } from "../../shared/placed-hold.ts";
import { queryDatabase } from "../../shared/query-database.ts";
import type { Region } from "../../shared/regions.ts";
import { callPeer } from "../../regions/peer-call.ts";
import {
  parseCaptureRequest,
  refuseUnknownHold,
  placedHoldView,
} from "../../money/wallet/routes/holds.route.ts";
import { applyMerchantAction } from "./holds.peer.ts";
import { merchantRequestToJson, parseMerchantResult } from "./peer-hold.ts";
import type { MerchantRequest } from "./peer-hold.ts";
import { findMerchantName, MERCHANT_SECRET_PREFIX } from "./merchants.store.ts";

type MerchantAction = "read" | "capture" | "release";

/**
 * Returns middleware that handles a merchant's action on a hold. Requests without a merchant secret
 * continue to authentication by API key.
 */
export function createMerchantActionRoute(kind: MerchantAction) {
  return async (c: AppContext, next: Next): Promise<Response | undefined> => {
    const secret = /^bearer (.+)$/is.exec(c.req.header("authorization") ?? "")?.[1] ?? "";
    if (secret.startsWith(MERCHANT_SECRET_PREFIX)) return respondToMerchant(c, kind, secret);
    await next();
    return undefined;
  };
}

async function respondToMerchant(
  c: AppContext,
  kind: MerchantAction,
  secret: string,
): Promise<Response> {
  const fields = { request_id: c.var.requestId, org_id: "" };
  const find = (): Promise<string | null> => findMerchantName(c.env.DB, secret);
  const name = await queryDatabase(find, "merchant_unreadable", fields);
  if (!name.ok) return fail(c, name.failure);
  if (name.value === null) return fail(c, { kind: "invalid_api_key" });
  return respond(c, await runAction(c, kind, name.value));
}

async function runAction(c: AppContext, kind: MerchantAction, merchant: string) {
  const hold = parseHoldName(c.req.param("id") ?? "");
  if (hold === null) return refuseUnknownHold();
  const action = await readAction(c, kind);
  if (!action.ok) return action;
  const { id, orgId, home } = hold;
  const request = { merchant, orgId, id, action: action.value };
  const { region } = c.var.config;
  const placed =
    home === region
      ? await applyMerchantAction(c, request)
      : await runActionAtHome(c, home, request);
  return placed.ok ? success(placedHoldView(placed.value, hold)) : placed;
}

async function readAction(
  c: AppContext,
  kind: MerchantAction,
): Promise<Result<MerchantRequest["action"]>> {
  if (kind === "capture") return parseCaptureRequest(c, "merchants");
  return success(kind === "release" ? { kind } : null);
}

/**
 * Forwards an action to the hold's home region. Retries are safe, because a hold ends only once.
 */
async function runActionAtHome(
  c: AppContext,
  home: Region,
  request: MerchantRequest,
): Promise<Result<PlacedHold>> {
  const peer = c.var.config.peers.find(({ region }) => region === home);
  const callOptions = { requestId: c.var.requestId, now: () => now(c.env) };
  const answer =
    peer === undefined
      ? null
      : await callPeer(peer, "holds", merchantRequestToJson(request), callOptions);
  const placed = answer === null ? null : parseMerchantResult(answer.body);
  return placed ?? refuse({ kind: "home_region_unreachable" });
}
