import type { AppContext } from "../shared/http/context.ts";
import { queryDatabase } from "../shared/query-database.ts";
import { timestamp } from "../shared/clock.ts";
import { refuse, success } from "../shared/failure.ts";
import type { Result } from "../shared/failure.ts";
import { hasLimits } from "../shared/key-terms.ts";
import type { ActingPerson } from "../accounts/people/people.store.ts";
import type { ActiveIdentity } from "./own-session.route.ts";
import { listAllowedCalls } from "./allowed-calls.ts";
import type { SessionIdentity } from "./allowed-calls.ts";
import type { Route } from "../shared/http/route.ts";
import { findViewedOrganization, findViewer } from "./viewed.store.ts";

export async function sessionView(
  c: AppContext,
  rows: readonly Route[],
  { identity, expiresAt }: { readonly identity: ActiveIdentity; readonly expiresAt: number },
): Promise<Result<object>> {
  const viewed = await describeIdentity(c, identity);
  if (!viewed.ok) return viewed;
  const { who, access } = viewed.value;
  const common = { region: c.var.config.region, expires_at: timestamp(expiresAt) };
  return success({ ...who, ...common, may: listAllowedCalls(rows, access) });
}

type DescribedIdentity = { readonly who: object; readonly access: SessionIdentity };

async function describeIdentity(
  c: AppContext,
  identity: ActiveIdentity,
): Promise<Result<DescribedIdentity>> {
  if (identity.kind === "operator") {
    const { as, operator } = identity;
    const viewed =
      as === null
        ? success(null)
        : await queryDatabase(
            () => findViewedOrganization(c.env.DB, as),
            "organization_unreadable",
            { org_id: as },
          );
    if (!viewed.ok) return viewed;
    const role = viewed.value === null ? "operator" : "owner";
    const nobody = { organization: viewed.value, key: null, member: null };
    const who = { kind: "operator", role, operator: operator.role, ...nobody };
    const access: SessionIdentity =
      viewed.value === null ? { kind: "operator", role: operator.role } : { kind: "viewer" };
    return success({ who, access });
  }
  if (identity.kind === "person") {
    const { acting } = identity;
    const access = { kind: "person", role: acting.as?.role ?? null } as const;
    return success({ who: personView(acting), access });
  }
  const { keyId, orgId, terms } = identity.known;
  const fields = { key_id: keyId, org_id: orgId };
  const viewer = await queryDatabase(
    () => findViewer(c.env.DB, keyId),
    "viewer_unreadable",
    fields,
  );
  if (!viewer.ok) return viewer;
  if (viewer.value === null) return refuse({ kind: "invalid_api_key" });
  const { key, member } = viewer.value;
  const limited = hasLimits(terms);
  return success({
    who: { kind: "key", role: member.role, ...viewer.value, key: { ...key, limited } },
    access: { kind: "key", role: member.role, isLimited: limited },
  });
}

function personView({ person, as }: ActingPerson): object {
  const { id, name, email } = person;
  return {
    kind: "person",
    role: as?.role ?? null,
    person: { id, name, email },
    organization:
      as === null
        ? null
        : {
            id: as.orgId,
            name: as.name,
            slug: as.slug,
            status: as.status,
            is_personal: as.isPersonal === 1,
          },
    key: null,
    member: as === null ? null : { id: as.memberId, email: as.email, role: as.role },
  };
}
