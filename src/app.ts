import { HonoBase } from "hono/hono-base";
import { RegExpRouter } from "hono/router/reg-exp-router";
import type { Context } from "hono";
import { isModelName } from "./catalog/catalog.ts";
import { consoleDispatch } from "./console/dispatch.route.ts";
import { loginRoute, logoutRoute, requireOwnPage, sessionRoute } from "./console/session.route.ts";
import { listModelsRoute, readModelRoute } from "./catalog/models.route.ts";
import { failUnexpectedly, requestContext } from "./http/context.ts";
import type { AppEnv } from "./http/context.ts";
import { methodNotAllowed, notFound } from "./http/not-found.ts";
import { routingPath } from "./http/routing-path.ts";
import { authorizePeer } from "./inference/authorize.peer.ts";
import { countTokensRoute } from "./inference/doors/messages/count-tokens.route.ts";
import { DOORS } from "./inference/doors/doors.ts";
import { speakDialect } from "./inference/doors/dialect.route.ts";
import { requireLiveAtHome } from "./inference/live-at-home.route.ts";
import { deploymentOf } from "./inference/deployment.ts";
import { outcomesPeer } from "./inference/outcomes.peer.ts";
import { answerPaid } from "./inference/paid-path.route.ts";
import { requireSoundDeployment } from "./inference/sound-deployment.route.ts";
import { requireAdmission, requireUnlimited, startAdmission } from "./keys/admission.route.ts";
import { forwardPeer } from "./keys/forward.peer.ts";
import { forwardToHome } from "./keys/forward.route.ts";
import {
  createKeyRoute,
  listKeysRoute,
  ownKeyRoute,
  patchKeyRoute,
  revokeKeyRoute,
} from "./keys/keys.route.ts";
import { lookupPeer } from "./keys/keys.peer.ts";
import { findKey } from "./keys/keys.store.ts";
import { revocationsPeer } from "./keys/revocations.peer.ts";
import {
  readMember,
  requireMember,
  requireOwnOrganization,
  requireRole,
} from "./organizations/member.route.ts";
import {
  patchOrganizationRoute,
  readOrganizationRoute,
} from "./organizations/organizations.route.ts";
import { countRequests } from "./metrics/count-requests.route.ts";
import { operatorRoutes } from "./operator/operator.route.ts";
import { requirePeer } from "./regions/require-peer.peer.ts";
import { alertsRoute } from "./wallet/routes/reads.route.ts";
import { balanceRoute } from "./wallet/routes/reads.route.ts";
import {
  deleteEndUserRoute,
  listEndUsersRoute,
  patchEndUserRoute,
  putEndUserRoute,
  readEndUserRoute,
} from "./wallet/routes/end-users.route.ts";
import { generationRoute } from "./wallet/routes/reads.route.ts";
import { patchSettingsRoute, readSettingsRoute } from "./wallet/routes/end-users.route.ts";
import { usageRoute } from "./wallet/routes/usage.route.ts";

/**
 * The whole surface. Order matters: `requestContext` wraps every answer; below `/internal/v1` nothing
 * exists but for a peer; below `/v1` everything is authenticated, and everything but the paid paths
 * (which read their body meanwhile) has been admitted before its handler runs; from `forwardToHome` on
 * a global key away from home is answered by its home. The router finds a route in one match, whatever
 * their number, and throws for paths that it cannot tell apart, where the default one falls back to a
 * slow one.
 */
export const app = new HonoBase<AppEnv>({ router: new RegExpRouter(), getPath: routingPath });

/** What costs money; how many of these an isolate works on at once is bounded. */
const PAID_PATHS: ReadonlySet<string> = new Set(DOORS.map((door) => door.path));

/** Whether a name is an id, an alias or `maker/*` of what is sold here. */
const isSold = (c: Context<AppEnv>) => (name: string) =>
  isModelName(deploymentOf(c.var.config).catalog, name);

/** Who may read what was spent, and change what may be. */
const requireAccountant = requireRole("owner", "admin", "billing");

app.use(countRequests);
app.use(speakDialect);
app.use(requestContext);
app.onError(failUnexpectedly);
app.notFound(notFound);

app.use(requireSoundDeployment);

app.get("/healthz", (c) => c.json({ region: c.var.config.region, version: c.var.config.version }));
app.all("/healthz", methodNotAllowed(["GET"]));

app.use("/internal/v1/*", requirePeer);
app.post("/internal/v1/lookup", lookupPeer);
app.post("/internal/v1/outcomes", outcomesPeer);
app.post("/internal/v1/revocations", revocationsPeer);
app.post("/internal/v1/authorize", authorizePeer);
app.post("/internal/v1/forward", (c) =>
  forwardPeer(c, { dispatch: app.fetch, paidPaths: PAID_PATHS }),
);

app.use("/v1/*", startAdmission(PAID_PATHS));
for (const door of DOORS) app.post(door.path, (c) => answerPaid(c, door));

app.use("/v1/*", requireAdmission);
for (const { path } of DOORS) app.all(path, methodNotAllowed(["POST"]));
app.post("/v1/messages/count_tokens", requireLiveAtHome, countTokensRoute);
app.all("/v1/messages/count_tokens", methodNotAllowed(["POST"]));
app.use("/v1/models/*", requireLiveAtHome);
app.get("/v1/models", (c) => listModelsRoute(c, deploymentOf(c.var.config).catalog));
app.all("/v1/models", methodNotAllowed(["GET"]));
app.get("/v1/models/:id{.+}", (c) => readModelRoute(c, deploymentOf(c.var.config).catalog));
app.all("/v1/models/:id{.+}", methodNotAllowed(["GET"]));

app.use("/v1/*", forwardToHome);
app.get("/v1/key", ownKeyRoute);
app.all("/v1/key", methodNotAllowed(["GET"]));

app.use("/v1/*", requireUnlimited);
app.get("/v1/balance", balanceRoute);
app.all("/v1/balance", methodNotAllowed(["GET"]));

app.get("/v1/keys", requireMember, listKeysRoute);
app.post("/v1/keys", requireMember, (c) => createKeyRoute(c, isSold(c)));
app.all("/v1/keys", methodNotAllowed(["GET", "POST"]));
app.patch("/v1/keys/:id", requireMember, (c) => patchKeyRoute(c, isSold(c)));
app.delete("/v1/keys/:id", readMember, revokeKeyRoute);
app.all("/v1/keys/:id", methodNotAllowed(["PATCH", "DELETE"]));

app.get("/v1/users", listEndUsersRoute);
app.post("/v1/users", putEndUserRoute);
app.all("/v1/users", methodNotAllowed(["GET", "POST"]));
app.get("/v1/users/:external_id{.+}", readEndUserRoute);
app.patch("/v1/users/:external_id{.+}", patchEndUserRoute);
app.delete("/v1/users/:external_id{.+}", deleteEndUserRoute);
app.all("/v1/users/:external_id{.+}", methodNotAllowed(["GET", "PATCH", "DELETE"]));

app.get("/v1/usage", requireMember, requireAccountant, usageRoute);
app.all("/v1/usage", methodNotAllowed(["GET"]));
app.get("/v1/generations/:id", requireMember, generationRoute(findKey));
app.all("/v1/generations/:id", methodNotAllowed(["GET"]));
app.get("/v1/alerts", requireMember, requireAccountant, alertsRoute);
app.all("/v1/alerts", methodNotAllowed(["GET"]));

app.get("/v1/orgs/:org_id", requireOwnOrganization, requireMember, readOrganizationRoute);
app.patch(
  "/v1/orgs/:org_id",
  requireOwnOrganization,
  requireMember,
  requireRole("owner"),
  patchOrganizationRoute,
);
app.all("/v1/orgs/:org_id", methodNotAllowed(["GET", "PATCH"]));
app.use("/v1/orgs/:org_id/settings", requireOwnOrganization, requireMember, requireAccountant);
app.get("/v1/orgs/:org_id/settings", readSettingsRoute);
app.patch("/v1/orgs/:org_id/settings", patchSettingsRoute);
app.all("/v1/orgs/:org_id/settings", methodNotAllowed(["GET", "PATCH"]));

app.route("/admin/v1", operatorRoutes(deploymentOf));

app.use("/console/api/*", requireOwnPage);
app.post("/console/api/login", loginRoute);
app.all("/console/api/login", methodNotAllowed(["POST"]));
app.get("/console/api/session", sessionRoute);
app.all("/console/api/session", methodNotAllowed(["GET"]));
app.post("/console/api/logout", logoutRoute);
app.all("/console/api/logout", methodNotAllowed(["POST"]));
for (const path of ["/console/api/v1/*", "/console/api/admin/v1/*"]) {
  app.on(["GET", "HEAD", "POST", "PATCH", "PUT", "DELETE"], path, (c) =>
    consoleDispatch(c, { dispatch: app.fetch, paidPaths: PAID_PATHS }),
  );
}
