/** The calls of `/admin/v1` that scripts and tests make. A refusal throws with the answer's own words. */
export type AdminClient = {
  /** Ends in /admin/v1. */
  readonly url: string;
  readonly token: string;
};
export type Scope = "regional" | "global";
export type NewOrganization = {
  readonly name: string;
  /** 3-32 of a-z 0-9 -, unique in its region. */
  readonly slug: string;
  readonly ownerEmail: string;
  readonly keyScope: Scope;
};
export type Made = { readonly orgId: string; readonly memberId: string; readonly key: string };
export type NewKey = {
  readonly orgId: string;
  readonly memberId: string;
  readonly name: string;
  readonly scope: Scope;
  /** Requests per minute, 1 to 1000; the gateway's default without it. */
  readonly rpmLimit?: number;
};

/** Makes an organisation with its owner and that owner's first key. */
export async function createOrganization(admin: AdminClient, made: NewOrganization): Promise<Made> {
  const answer = await call<{
    organization: { id: string };
    member: { id: string };
    key: { key: string };
  }>(admin, "/orgs", {
    name: made.name,
    slug: made.slug,
    owner_email: made.ownerEmail,
    key_scope: made.keyScope,
  });
  return { orgId: answer.organization.id, memberId: answer.member.id, key: answer.key.key };
}

/** Makes another key for a member and answers with the key itself. */
export async function createKey(admin: AdminClient, made: NewKey): Promise<string> {
  const answer = await call<{ key: string }>(
    admin,
    `/orgs/${made.orgId}/members/${made.memberId}/keys`,
    {
      name: made.name,
      scope: made.scope,
      ...(made.rpmLimit === undefined ? {} : { rpm_limit: made.rpmLimit }),
    },
  );
  return answer.key;
}

/** Adds credits, in micros; the same reference again adds nothing. */
export async function addCredits(
  admin: AdminClient,
  credit: { readonly orgId: string; readonly amountMicro: number; readonly reference: string },
): Promise<void> {
  await call(admin, `/orgs/${credit.orgId}/credits`, {
    amount_micro: credit.amountMicro,
    reference: credit.reference,
  });
}

async function call<T>(admin: AdminClient, path: string, body: object): Promise<T> {
  const response = await fetch(admin.url + path, {
    method: "POST",
    headers: { authorization: `Bearer ${admin.token}`, "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`POST ${path} answered ${response.status}: ${text}`);
  return JSON.parse(text) as T;
}
