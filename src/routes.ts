import { createModelNameLookup } from "./models/catalog/catalog.ts";
import type { Catalog } from "./models/catalog/catalog.ts";
import { listModelsRoute, readModelRoute } from "./models/catalog/models.route.ts";
import type { AppContext } from "./shared/http/context.ts";
import { respond } from "./shared/http/endpoint.ts";
import type { EndpointResult } from "./shared/http/endpoint.ts";
import { countTokensRoute } from "./models/requests/count-tokens.route.ts";
import { ENDPOINTS } from "./models/endpoints/endpoints.ts";
import { modelEndpointsRoute } from "./models/requests/model-endpoints.route.ts";
import { loadCallerCatalog } from "./models/requests/pricing.route.ts";
import { getDeployment } from "./models/requests/deployment.ts";
import { handlePaidRequest } from "./models/requests/paid-path.route.ts";
import {
  deleteResponseRoute,
  listInputItemsRoute,
  readResponseRoute,
} from "./models/stored-responses/stored-responses.route.ts";
import {
  createKeyRoute,
  listKeysRoute,
  readOwnKeyRoute,
  patchKeyRoute,
  revokeKeyRoute,
  rotateKeyRoute,
} from "./accounts/keys/keys.route.ts";
import { findKey, readMemberKeyIds, readMemberIdsByKeyId } from "./accounts/keys/keys.store.ts";
import {
  createSessionRoute,
  endSessionRoute,
  listSessionsRoute,
} from "./accounts/keys/sessions.route.ts";
import { findMerchantName, isMerchant } from "./accounts/merchants/merchants.store.ts";
import { now } from "./shared/clock.ts";
import { MEMBER_ROLES } from "./shared/caller.ts";
import type { Role } from "./shared/caller.ts";
import { createPathPattern, withoutFreshLogin } from "./shared/http/route.ts";
import type { KeyRoute, RouteReach, TypedRoute } from "./shared/http/route.ts";
import {
  patchOrganizationRoute,
  readOrganizationRoute,
  patchMemberRoute,
  readMemberRoute,
} from "./accounts/organizations/organizations.route.ts";
import { PEOPLE_ROUTES } from "./accounts/people/endpoints.ts";
import type { PeopleEndpoint } from "./accounts/people/endpoints.ts";
import { OPERATOR_ROUTES } from "./operator/endpoints.ts";
import type { OperatorEndpoint } from "./operator/operator-context.ts";
import {
  createPauseRoute,
  endPauseRoute,
  listPausesRoute,
} from "./accounts/pauses/pauses.route.ts";
import {
  createPurchaseRoute,
  cancelPurchaseRoute,
  readCreditsRoute,
  listPurchasesRoute,
  createBillingPortalRoute,
  readPurchaseRoute,
} from "./money/payments/purchases.route.ts";
import {
  deleteEndUserRoute,
  listEndUsersRoute,
  patchEndUserRoute,
  patchSettingsRoute,
  putEndUserRoute,
  readEndUserRoute,
  readSettingsRoute,
} from "./money/wallet/routes/end-users.route.ts";
import {
  listEventsRoute,
  listAlertsRoute,
  readBalanceRoute,
} from "./money/wallet/routes/reads.route.ts";
import { readErrorsRoute } from "./money/wallet/routes/errors.route.ts";
import {
  readGenerationDataRoute,
  readGenerationRoute,
  listHoldsRoute,
  listGenerationsRoute,
} from "./money/wallet/routes/generations.route.ts";
import {
  captureHoldRoute,
  createChargeRoute,
  extendHoldRoute,
  placeHoldRoute,
  readHoldRoute,
  releaseHoldRoute,
} from "./money/wallet/routes/holds.route.ts";
import { listExportsRoute, exportFocusRoute } from "./money/wallet/exports/exports.route.ts";
import { readUsageRoute } from "./money/wallet/routes/usage.route.ts";
import {
  deliveriesRoute,
  deliveryRoute,
  resendRoute,
  replayRoute,
} from "./events/webhooks/deliveries.route.ts";
import {
  createWebhookRoute,
  deleteWebhookRoute,
  listWebhooksRoute,
  patchWebhookRoute,
  readWebhookRoute,
  rotateWebhookRoute,
  testWebhookRoute,
} from "./events/webhooks/webhooks.route.ts";

type ForKeys = KeyRoute & {
  readonly handle: (c: AppContext) => Response | Promise<Response>;
};
type RouteRow = ForKeys | OperatorEndpoint | PeopleEndpoint;
type AllowedCallers = Pick<KeyRoute, "roles" | "member" | "others" | "sessions">;

const SENIOR_ROLES: readonly Role[] = ["owner", "admin", "billing"];
/** Permits any active key, without a database read. */
const ANY_KEY: AllowedCallers = { roles: MEMBER_ROLES, member: "unread" };
const ANY_MEMBER: AllowedCallers = { roles: MEMBER_ROLES, member: "read" };
const OWN_OBJECTS: AllowedCallers = { ...ANY_MEMBER, others: SENIOR_ROLES };
const ACCOUNTANTS: AllowedCallers = { roles: SENIOR_ROLES, member: "read" };
const MANAGERS: AllowedCallers = { roles: ["owner", "admin"], member: "read" };
/** Permits all keys, including limited ones, but no sessions. */
const KEYS_ONLY = { sessions: false } as const;

/** Quotas that can only lower an end user's limits. */
const NO_QUOTA = { monthly_quota_dollars: [0], daily_quota_dollars: [0] };

const MERCHANTS = { isMerchant, findMerchantName };

/** The routes below `/v1`. All rows of a path share the same `reach` (callers and region). */
export const KEY_ROUTES = [
  ...ENDPOINTS.map((paid) =>
    path("POST " + paid.path, "paid", ANY_KEY, (c) => handlePaidRequest(c, paid)),
  ),
  path("POST /v1/messages/count_tokens", "here", ANY_KEY, countTokensRoute),
  path("GET /v1/models", "here", ANY_KEY, async (c) =>
    listModelsRoute(c, await loadCallerCatalog(c)),
  ),
  path("GET /v1/models/:id{.+?}/endpoints", "here", ANY_KEY, async (c) =>
    modelEndpointsRoute(c, await loadCallerCatalog(c)),
  ),
  path("GET /v1/models/:id{.+?}", "here", ANY_KEY, async (c) =>
    readModelRoute(c, await loadCallerCatalog(c)),
  ),

  endpoint("GET /v1/key", "home", ANY_KEY, readOwnKeyRoute),
  endpoint("GET /v1/auth/key", "home", ANY_KEY, readOwnKeyRoute),
  endpoint("GET /v1/responses/:id{resp_\\w+}", "home", OWN_OBJECTS, readResponseRoute),
  withoutFreshLogin(
    endpoint("DELETE /v1/responses/:id{resp_\\w+}", "home", OWN_OBJECTS, deleteResponseRoute),
  ),
  endpoint(
    "GET /v1/responses/:id{resp_\\w+}/input_items",
    "home",
    OWN_OBJECTS,
    listInputItemsRoute,
  ),
  endpoint(
    "POST /v1/keys/:id/rotate",
    "home",
    { ...ANY_MEMBER, ...KEYS_ONLY, others: [] },
    rotateKeyRoute,
  ),
  endpoint("GET /v1/sessions", "home", { ...OWN_OBJECTS, ...KEYS_ONLY }, listSessionsRoute),
  endpoint("POST /v1/sessions", "home", { ...ANY_MEMBER, ...KEYS_ONLY }, (c) =>
    createSessionRoute(c, modelNamesOf(c)),
  ),
  withoutFreshLogin(
    endpoint("DELETE /v1/sessions/:id", "home", { ...OWN_OBJECTS, ...KEYS_ONLY }, endSessionRoute),
  ),

  endpoint(
    "GET /v1/holds",
    "home",
    { ...OWN_OBJECTS, ...KEYS_ONLY },
    listHoldsRoute(readMemberKeyIds),
  ),
  endpoint("POST /v1/holds", "home", ANY_KEY, placeHoldRoute(MERCHANTS)),
  endpoint("GET /v1/holds/:id", "home", OWN_OBJECTS, readHoldRoute(readMemberKeyIds)),
  endpoint("POST /v1/holds/:id/capture", "home", ANY_KEY, captureHoldRoute),
  endpoint("POST /v1/holds/:id/release", "home", ANY_KEY, releaseHoldRoute),
  endpoint("POST /v1/holds/:id/extend", "home", ANY_KEY, extendHoldRoute),
  endpoint("POST /v1/charges", "home", ANY_KEY, createChargeRoute(MERCHANTS)),

  endpoint("GET /v1/balance", "managed", ANY_KEY, readBalanceRoute),
  endpoint("GET /v1/credits", "managed", ACCOUNTANTS, readCreditsRoute),
  endpoint("GET /v1/credits/purchases", "managed", ACCOUNTANTS, listPurchasesRoute),
  endpoint("POST /v1/credits/purchases", "managed", ACCOUNTANTS, createPurchaseRoute),
  endpoint("GET /v1/credits/purchases/:id", "managed", ACCOUNTANTS, readPurchaseRoute),
  endpoint("POST /v1/credits/purchases/:id/cancel", "managed", ACCOUNTANTS, cancelPurchaseRoute),
  endpoint("POST /v1/credits/portal", "managed", ACCOUNTANTS, createBillingPortalRoute),
  endpoint("GET /v1/usage", "managed", ACCOUNTANTS, readUsageRoute(readMemberIdsByKeyId)),
  endpoint("GET /v1/exports", "managed", ACCOUNTANTS, listExportsRoute),
  path("GET /v1/exports/focus", "managed", ACCOUNTANTS, exportFocusRoute),
  endpoint("GET /v1/generations", "managed", OWN_OBJECTS, listGenerationsRoute(readMemberKeyIds)),
  endpoint("GET /v1/generations/:id", "managed", OWN_OBJECTS, readGenerationRoute(findAnyKey)),
  endpoint("GET /v1/generation", "managed", OWN_OBJECTS, readGenerationDataRoute(findAnyKey)),
  endpoint("GET /v1/errors", "managed", OWN_OBJECTS, readErrorsRoute(readMemberKeyIds)),
  endpoint("GET /v1/alerts", "managed", ACCOUNTANTS, listAlertsRoute),
  endpoint("GET /v1/events", "managed", ACCOUNTANTS, listEventsRoute),
  endpoint("GET /v1/webhooks", "managed", MANAGERS, listWebhooksRoute),
  endpoint("POST /v1/webhooks", "managed", MANAGERS, createWebhookRoute),
  endpoint("GET /v1/webhooks/:id", "managed", MANAGERS, readWebhookRoute),
  endpoint("PATCH /v1/webhooks/:id", "managed", MANAGERS, patchWebhookRoute),
  endpoint("DELETE /v1/webhooks/:id", "managed", MANAGERS, deleteWebhookRoute),
  endpoint("POST /v1/webhooks/:id/rotate", "managed", MANAGERS, rotateWebhookRoute),
  withoutFreshLogin(endpoint("POST /v1/webhooks/:id/test", "managed", MANAGERS, testWebhookRoute)),
  withoutFreshLogin(endpoint("POST /v1/webhooks/:id/resend", "managed", MANAGERS, resendRoute)),
  endpoint("GET /v1/webhooks/:id/deliveries", "managed", MANAGERS, deliveriesRoute),
  endpoint("GET /v1/webhooks/:id/deliveries/:delivery_id", "managed", MANAGERS, deliveryRoute),
  withoutFreshLogin(endpoint("POST /v1/webhooks/:id/replay", "managed", MANAGERS, replayRoute)),
  endpoint("GET /v1/keys", "managed", OWN_OBJECTS, listKeysRoute),
  endpoint("POST /v1/keys", "managed", ANY_MEMBER, (c) => createKeyRoute(c, modelNamesOf(c))),
  endpoint("PATCH /v1/keys/:id", "managed", { ...ANY_MEMBER, others: ["owner", "admin"] }, (c) =>
    patchKeyRoute(c, modelNamesOf(c)),
  ),
  withoutFreshLogin(
    endpoint("DELETE /v1/keys/:id", "managed", { ...OWN_OBJECTS, member: "tried" }, revokeKeyRoute),
  ),
  endpoint("GET /v1/pauses", "managed", OWN_OBJECTS, listPausesRoute),
  withoutFreshLogin(endpoint("POST /v1/pauses", "managed", OWN_OBJECTS, createPauseRoute)),
  endpoint("DELETE /v1/pauses/:id", "managed", MANAGERS, endPauseRoute),
  endpoint("GET /v1/members/:id", "managed", MANAGERS, readMemberRoute),
  endpoint("PATCH /v1/members/:id", "managed", MANAGERS, patchMemberRoute),
  endpoint("GET /v1/users", "managed", ANY_KEY, listEndUsersRoute),
  withoutFreshLogin(endpoint("POST /v1/users", "managed", ANY_KEY, putEndUserRoute), NO_QUOTA),
  endpoint("GET /v1/users/:external_id{.+}", "managed", ANY_KEY, readEndUserRoute),
  withoutFreshLogin(
    endpoint("PATCH /v1/users/:external_id{.+}", "managed", ANY_KEY, patchEndUserRoute),
    NO_QUOTA,
  ),
  endpoint("DELETE /v1/users/:external_id{.+}", "managed", ANY_KEY, deleteEndUserRoute),
  endpoint("GET /v1/orgs/:org_id", "managed", ANY_MEMBER, readOrganizationRoute),
  endpoint(
    "PATCH /v1/orgs/:org_id",
    "managed",
    { roles: ["owner"], member: "read" },
    patchOrganizationRoute,
  ),
  endpoint("GET /v1/orgs/:org_id/settings", "managed", ACCOUNTANTS, readSettingsRoute),
  withoutFreshLogin(
    endpoint("PATCH /v1/orgs/:org_id/settings", "managed", ACCOUNTANTS, patchSettingsRoute),
    {
      auto_top_up: [null],
    },
  ),
] as const satisfies readonly ForKeys[];

/**
 * The route table. Access checks, forwarding, the console's permissions, OpenAPI, the CLI and
 * authorization tests are derived from it.
 */
export const ROUTES: readonly RouteRow[] = [...KEY_ROUTES, ...OPERATOR_ROUTES, ...PEOPLE_ROUTES];

export function filterRoutesByReach<R extends RouteReach>(
  ...reaches: readonly R[]
): readonly (RouteRow & { readonly reach: R })[] {
  const wanted: readonly RouteReach[] = reaches;
  return ROUTES.filter((row): row is RouteRow & { readonly reach: R } =>
    wanted.includes(row.reach),
  );
}

/** Paths whose POST requests take one of the isolate's memory slots. */
export const PAID_PATHS: ReadonlySet<string> = new Set(
  filterRoutesByReach("paid").map((row) => row.path),
);

const AWAY_ROUTES = filterRoutesByReach("paid", "here");

/** Paths whose POST requests can call a provider, paid or not. */
export const PROVIDER_PATHS: ReadonlySet<string> = new Set(
  AWAY_ROUTES.filter(({ method }) => method === "POST").map((row) => row.path),
);

const AWAY_PATH_PATTERNS = AWAY_ROUTES.map((row) => createPathPattern(row.path));

/** Reports whether the key's home handles a path below `/v1`. */
export function isHandledAtHome(routedPath: string): boolean {
  const isBelow = /^\/v1(?:\/|$)/.test(routedPath);
  return isBelow && !AWAY_PATH_PATTERNS.some((pattern) => pattern.test(routedPath));
}

function path(
  name: string,
  reach: KeyRoute["reach"],
  who: AllowedCallers,
  handle: ForKeys["handle"],
): ForKeys {
  const [method, at] = name.split(" ") as [KeyRoute["method"], string];
  return { method, path: at, reach, ...who, freshLogin: "always", handle };
}

function endpoint<const Name extends string, A extends EndpointResult>(
  name: Name,
  reach: "home" | "managed",
  who: AllowedCallers,
  handle: (c: AppContext) => Promise<A>,
): ForKeys & TypedRoute<Name, A> {
  return path(name, reach, who, async (c) => respond(c, await handle(c)));
}

function findAnyKey(...[db, id, owner]: Parameters<Parameters<typeof readGenerationRoute>[0]>) {
  return findKey(db, id, { ...owner, withConsole: true });
}

function catalogOf(c: AppContext): Catalog {
  return getDeployment(c.var.config).catalogAt(now(c.env));
}

function modelNamesOf(c: AppContext): ReturnType<typeof createModelNameLookup> {
  return createModelNameLookup(catalogOf(c));
}
