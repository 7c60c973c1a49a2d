import { HonoBase } from "hono/hono-base";
import { RegExpRouter } from "hono/router/reg-exp-router";
import type { MiddlewareHandler } from "hono";
import { endViewRoute, viewAsRoute } from "./console/as-customer.route.ts";
import { dispatchConsoleCall } from "./console/dispatch.route.ts";
import { callbackRoute, listIssuersRoute, loginStartRoute } from "./console/login.route.ts";
import { requireConsolePage } from "./console/own-session.route.ts";
import { addPeopleRoutes } from "./console/people.route.ts";
import { loginRoute, logoutRoute, sessionRoute } from "./console/session.route.ts";
import { respondToUnexpectedError, requestContext } from "./shared/http/context.ts";
import type { AppEnv } from "./shared/http/context.ts";
import { respondNotFound, refuseOtherMethods } from "./shared/http/not-found.ts";
import { routingPath } from "./shared/http/routing-path.ts";
import {
  handlePeerStopQuery,
  handlePeerAuthorize,
  handlePeerFailures,
  handlePeerStoredResponses,
  handlePeerOutcomes,
} from "./models/requests/paid-path.peer.ts";
import { selectDialect } from "./models/endpoints/dialect.route.ts";
import { requireActiveKeyAtHome } from "./models/requests/home-or-away.route.ts";
import { getDeployment } from "./models/requests/deployment.ts";
import { flushFailedRequests } from "./models/requests/failed-requests.route.ts";
import { requireSoundDeployment } from "./models/requests/require-deployment.route.ts";
import {
  requireAdmission,
  refuseSessions,
  requireUnlimitedKey,
  startAdmission,
} from "./accounts/keys/admission.route.ts";
import { handlePeerForward } from "./accounts/keys/forward.peer.ts";
import { forwardToHome } from "./accounts/keys/forward.route.ts";
import { handlePeerLookup, handlePeerRevocations } from "./accounts/keys/global-keys.peer.ts";
import { handlePeerHoldAction } from "./accounts/merchants/holds.peer.ts";
import { createMerchantActionRoute } from "./accounts/merchants/merchant.route.ts";
import { RELEASE } from "./shared/release.ts";
import {
  readMember,
  requireMember,
  requireOwnOrganization,
  requireRole,
  notifyWalletAfterWrite,
} from "./accounts/organizations/member.route.ts";
import { countRequests } from "./events/metrics/count-requests.route.ts";
import { addOperatorRoutes } from "./operator/operator.route.ts";
import {
  isHandledAtHome,
  PAID_PATHS,
  PROVIDER_PATHS,
  ROUTES,
  filterRoutesByReach,
} from "./routes.ts";
import { MEMBER_ROLES } from "./shared/caller.ts";
import type { KeyRoute } from "./shared/http/route.ts";
import { stripeWebhookRoute } from "./money/payments/stripe-webhook.route.ts";
import { requirePeer } from "./regions/require-peer.peer.ts";

/**
 * The middleware and routes, in order. Below `/v1`, the gateway verifies keys first. Handlers after
 * `forwardToHome` run in the key's home region.
 */
export const app = new HonoBase<AppEnv>({ router: new RegExpRouter(), getPath: routingPath });

app.use(countRequests);
app.use(selectDialect);
app.use(requestContext);
app.onError(respondToUnexpectedError);
app.notFound(respondNotFound);

app.use(requireSoundDeployment);

app.get("/healthz", (c) => {
  const { region, version } = c.var.config;
  return c.json({ region, release: RELEASE, version });
});
refuseOtherMethods(app, [{ method: "GET", path: "/healthz" }]);

app.post("/payments/stripe", stripeWebhookRoute);
refuseOtherMethods(app, [{ method: "POST", path: "/payments/stripe" }]);

app.use("/internal/v1/*", requirePeer);
app.post("/internal/v1/lookup", handlePeerLookup);
app.post("/internal/v1/outcomes", handlePeerOutcomes);
app.post("/internal/v1/revocations", handlePeerRevocations);
app.post("/internal/v1/authorize", handlePeerAuthorize);
app.post("/internal/v1/kept", handlePeerStoredResponses);
app.post("/internal/v1/holds", handlePeerHoldAction);
app.post("/internal/v1/failures", handlePeerFailures);
app.post("/internal/v1/watch", handlePeerStopQuery);
app.post("/internal/v1/forward", (c) =>
  handlePeerForward(c, { dispatch: app.fetch, isHandledAtHome }),
);

app.get("/v1/holds/:id", createMerchantActionRoute("read"));
app.post("/v1/holds/:id/capture", createMerchantActionRoute("capture"));
app.post("/v1/holds/:id/release", createMerchantActionRoute("release"));
app.use("/v1/*", startAdmission(PAID_PATHS));
serve("paid");

app.use("/v1/*", requireAdmission);
refuseOtherMethods(app, filterRoutesByReach("paid"));
const herePaths = new Set(filterRoutesByReach("here").map(({ path }) => path));
for (const path of herePaths) app.use(path, requireActiveKeyAtHome);
serve("here");
refuseOtherMethods(app, filterRoutesByReach("here"));

for (const path of ["/v1/generations/*", "/v1/errors"]) app.use(path, flushFailedRequests);
app.use("/v1/*", forwardToHome);
serve("home");
refuseOtherMethods(app, filterRoutesByReach("home"));

app.use("/v1/*", requireUnlimitedKey);
for (const path of ["/v1/keys/*", "/v1/orgs/:org_id", "/v1/webhooks/*"]) {
  app.use(path, notifyWalletAfterWrite);
}
serve("managed");
refuseOtherMethods(app, filterRoutesByReach("managed"));

addOperatorRoutes(app, getDeployment);

app.get("/console/api/login/callback/:issuer", callbackRoute);
app.use("/console/api/*", requireConsolePage);
app.get("/console/api/login", listIssuersRoute);
app.post("/console/api/login/start", loginStartRoute);
addPeopleRoutes(app);
app.post("/console/api/login", (c) => loginRoute(c, ROUTES));
app.get("/console/api/session", (c) => sessionRoute(c, ROUTES));
app.post("/console/api/logout", logoutRoute);
app.post("/console/api/as", (c) => viewAsRoute(c, ROUTES));
app.delete("/console/api/as", (c) => endViewRoute(c, ROUTES));
refuseOtherMethods(app, [
  { method: "GET", path: "/console/api/login" },
  { method: "POST", path: "/console/api/login" },
  { method: "POST", path: "/console/api/login/start" },
  { method: "GET", path: "/console/api/session" },
  { method: "POST", path: "/console/api/logout" },
  { method: "POST", path: "/console/api/as" },
  { method: "DELETE", path: "/console/api/as" },
]);
for (const path of ["/console/api/v1/*", "/console/api/admin/v1/*"]) {
  app.on(["GET", "HEAD", "POST", "PATCH", "PUT", "DELETE"], path, (c) =>
    dispatchConsoleCall(c, { dispatch: app.fetch, paidPaths: PROVIDER_PATHS, rows: ROUTES }),
  );
}

function serve(reach: KeyRoute["reach"]): void {
  for (const row of filterRoutesByReach(reach)) {
    app.on(row.method, [row.path], ...checksOf(row), row.handle);
  }
}

/** Returns the middleware that checks access. Reads the member before checking the role. */
function checksOf({ path, member, roles, sessions }: KeyRoute): MiddlewareHandler<AppEnv>[] {
  const checks: MiddlewareHandler<AppEnv>[] = [];
  if (sessions === false) checks.push(refuseSessions);
  if (path.includes("/:org_id")) checks.push(requireOwnOrganization);
  if (member !== "unread") checks.push(member === "read" ? requireMember : readMember);
  if (roles !== MEMBER_ROLES) checks.push(requireRole(...roles));
  return checks;
}
