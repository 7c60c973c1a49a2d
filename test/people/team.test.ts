import { env } from "cloudflare:workers";
import * as fc from "fast-check";
import { expect, it } from "vitest";
import { mintConsoleKey } from "../../src/accounts/keys/console-key.store.ts";
import type { Role } from "../../src/shared/caller.ts";
import { mintId } from "../../src/shared/id.ts";
import { acceptInvitation, insertInvitation } from "../../src/accounts/people/invitations.store.ts";
import {
  findActingPerson,
  createInsertPersonStatements,
} from "../../src/accounts/people/people.store.ts";
import type { Person } from "../../src/accounts/people/person.ts";
import { canGrantRole } from "../../src/accounts/people/rights.ts";
import { removeMember, updateMember } from "../../src/accounts/organizations/members.store.ts";
import { createOrganization } from "../../src/accounts/organizations/organizations.store.ts";
import { effortFor } from "../effort.ts";
import { keySecrets } from "../keys/key-fixture.ts";

const ROLES: readonly Role[] = ["owner", "admin", "billing", "member"];
const PERSONS = 4;

type Step =
  | { readonly do: "invite"; readonly by: number; readonly role: Role; readonly to: number }
  | { readonly do: "accept"; readonly who: number; readonly which: number }
  | { readonly do: "role"; readonly by: number; readonly whom: number; readonly role: Role }
  | { readonly do: "remove"; readonly by: number; readonly whom: number }
  | { readonly do: "transfer"; readonly by: number; readonly whom: number };

const who = fc.nat({ max: PERSONS - 1 });
const role = fc.constantFrom(...ROLES);
const anyStep: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ do: fc.constant("invite" as const), by: who, role, to: who }),
  fc.record({ do: fc.constant("accept" as const), who, which: fc.nat({ max: 9 }) }),
  fc.record({ do: fc.constant("role" as const), by: who, whom: who, role }),
  fc.record({ do: fc.constant("remove" as const), by: who, whom: who }),
  fc.record({ do: fc.constant("transfer" as const), by: who, whom: who }),
);

type Invited = {
  readonly id: string;
  readonly role: Role;
  readonly to: number;
  by: string;
  at: number;
  isOpen: boolean;
};
/** The expected state: members with roles, open invitations and events. */
type Model = {
  readonly orgId: string;
  readonly members: Map<number, { readonly id: string; role: Role }>;
  readonly invited: Invited[];
  readonly eventTypes: string[];
  /** The time of each person's last removal. */
  readonly removed: Map<number, number>;
};

/** Each step takes a second. */
let now = Date.now();
const secrets = { region: "eu", keySecrets: keySecrets(), now: 0 } as const;

async function begin(): Promise<{ readonly model: Model; readonly persons: readonly Person[] }> {
  const persons = Array.from({ length: PERSONS }, (_, n): Person => {
    const id = mintId("per_", now);
    return {
      id,
      name: `P${n}`,
      email: `${id.toLowerCase()}@example.test`,
      isEmailProven: 1,
      sessionsFrom: now,
    };
  });
  const rows = persons.flatMap((one) =>
    createInsertPersonStatements(env.DB, one, { realm: "", issuer: "i", subject: one.id }),
  );
  await env.DB.batch([...rows]);
  const orgId = crypto.randomUUID();
  const id = crypto.randomUUID();
  const first = persons[0]?.email ?? "";
  const owner = { id, orgId, email: first, role: "owner" as const, createdAt: now };
  const additionalStatements = [
    env.DB.prepare("INSERT INTO member_people VALUES (?, ?, ?, 'sign_up', ?, ?)").bind(
      id,
      orgId,
      persons[0]?.id,
      now,
      now,
    ),
  ];
  const organization = {
    id: orgId,
    name: "T",
    slug: `t-${orgId.slice(0, 18)}`,
    region: "eu",
    isPersonal: 0,
    status: "active",
    rpmLimit: null,
    priceList: null,
    createdAt: now,
  } as const;
  await createOrganization(env.DB, {
    organization,
    owner,
    epoch: "e",
    additionalStatements,
    actor: { kind: "system", id: null },
  });
  return {
    persons,
    model: {
      orgId,
      members: new Map([[0, { id, role: "owner" }]]),
      invited: [],
      eventTypes: ["organization.created", "member.created"],
      removed: new Map(),
    },
  };
}

const owners = ({ members }: Model): number =>
  [...members.values()].filter((one) => one.role === "owner").length;

/** Checks that the database allowed a step exactly if the model does. */
function mustAgree(step: Step, did: boolean, may: boolean): void {
  if (did !== may) throw new Error(`${JSON.stringify(step)}: ${did ? "done" : "refused"}`);
}

/** Runs the step in the database and in the model, and checks that both allow or reject it. */
async function take(model: Model, persons: readonly Person[], step: Step): Promise<void> {
  if (step.do === "invite") return invite(model, step, persons);
  if (step.do === "accept") return accept(model, step, persons);
  if (step.do === "remove") return remove(model, step);
  const to = step.do === "role" ? step.role : "owner";
  const may = await change(model, step, to);
  if (step.do !== "transfer" || !may) return undefined;
  return remove(model, { do: "remove", by: step.by, whom: step.by });
}

async function accept(
  { members, invited, removed, ...model }: Model,
  step: Extract<Step, { do: "accept" }>,
  persons: readonly Person[],
): Promise<void> {
  const invitation = invited[step.which % Math.max(1, invited.length)];
  const person = persons[step.who];
  if (invitation === undefined || person === undefined) return;
  const inviter = [...members.values()].find(({ id }) => id === invitation.by);
  const isMeant = invitation.to === step.who && !members.has(step.who);
  const isBack = (removed.get(step.who) ?? 0) > invitation.at;
  const isGiven = inviter !== undefined && canGrantRole(inviter.role, invitation.role);
  const may = isMeant && !isBack && invitation.isOpen && isGiven;
  const key = await mintConsoleKey(secrets);
  const acceptance = {
    person,
    proven: [person.email ?? ""],
    memberId: crypto.randomUUID(),
    key,
    nowMs: now,
  };
  const id = await acceptInvitation(env.DB, invitation.id, acceptance);
  mustAgree(step, id !== null, may);
  if (id === null) return;
  invitation.isOpen = false;
  members.set(step.who, { id, role: invitation.role });
  model.eventTypes.push("member.created");
}

const isLast = (model: Model, { role: as }: { readonly role: Role }): boolean =>
  as === "owner" && owners(model) === 1;

async function remove(model: Model, step: Extract<Step, { do: "remove" }>): Promise<void> {
  const { members, invited, orgId } = model;
  const [by, whom] = [members.get(step.by), members.get(step.whom)];
  if (by === undefined || whom === undefined) return;
  const options = { actor: { kind: "member", id: by.id }, now, memberId: by.id } as const;
  const may = (by.id === whom.id || canGrantRole(by.role, whom.role)) && !isLast(model, whom);
  const removed = await removeMember(env.DB, { id: whom.id, orgId }, options);
  mustAgree(step, removed.ok, may);
  if (!may) return;
  members.delete(step.whom);
  model.removed.set(step.whom, now);
  model.eventTypes.push("member.removed");
  for (const one of invited.filter(({ isOpen, by: inviter }) => isOpen && inviter === whom.id)) {
    one.isOpen = false;
    model.eventTypes.push("invitation.ended");
  }
}

/** Runs a change. Reports whether it was allowed. */
async function change(
  model: Model,
  step: Extract<Step, { do: "role" | "transfer" }>,
  to: Role,
): Promise<boolean> {
  const { members, orgId } = model;
  const [by, whom] = [members.get(step.by), members.get(step.whom)];
  if (by === undefined || whom === undefined) return false;
  const options = { actor: { kind: "member", id: by.id }, now, memberId: by.id } as const;
  const may =
    canGrantRole(by.role, whom.role) &&
    canGrantRole(by.role, to) &&
    (to === "owner" || !isLast(model, whom));
  const changed = await updateMember(env.DB, { id: whom.id, orgId }, { role: to }, options);
  mustAgree(step, changed.ok, may);
  if (may && whom.role !== to) model.eventTypes.push("member.changed");
  if (may) whom.role = to;
  return may;
}

async function invite(
  model: Model,
  { by: inviter, role: as, to }: Extract<Step, { do: "invite" }>,
  persons: readonly Person[],
): Promise<void> {
  const by = model.members.get(inviter);
  if (by === undefined) return;
  const id = mintId("inv_", now);
  const email = persons[to]?.email ?? null;
  const actor = { kind: "member", id: by.id } as const;
  const invitation = {
    id,
    orgId: model.orgId,
    role: as,
    email,
    memberId: null,
    invitedBy: by.id,
    createdAt: now,
    expiresAt: now + 3_600_000,
  };
  const inserted = await insertInvitation(env.DB, invitation, actor);
  mustAgree({ do: "invite", by: inviter, role: as, to }, inserted.ok, canGrantRole(by.role, as));
  if (!inserted.ok) return;
  const open = model.invited.find((one) => one.id === inserted.value.id);
  // The invitation is extended as a new one.
  if (open !== undefined) return void Object.assign(open, { by: by.id, at: now });
  model.invited.push({ id, role: as, to, by: by.id, at: now, isOpen: true });
  model.eventTypes.push("invitation.created");
}

async function check(model: Model, persons: readonly Person[]): Promise<void> {
  expect(owners(model)).toBeGreaterThan(0);
  for (const [n, person] of persons.entries()) {
    const rows = await env.DB.prepare(
      "SELECT members.id, role FROM members JOIN member_people ON member_id = members.id WHERE person_id = ? AND removed_at IS NULL",
    )
      .bind(person.id)
      .all<{ id: string; role: Role }>();
    const own = model.members.get(n);
    expect(rows.results).toEqual(own === undefined ? [] : [own]);
  }
  const { results } = await env.DB.prepare("SELECT type FROM events WHERE org_id = ?")
    .bind(model.orgId)
    .all<{ type: string }>();
  expect(results.map(({ type }) => type).toSorted()).toEqual(model.eventTypes.toSorted());
}

it("an organization always has an owner, admits only members, and loses no event, whatever the members do", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(anyStep, { minLength: 5, maxLength: 25 }), async (steps) => {
      const { model, persons } = await begin();
      for (const one of steps) {
        await take(model, persons, one);
        now += 1000;
      }
      await check(model, persons);
      const gone = persons.find((_, n) => !model.members.has(n));
      if (gone === undefined) return;
      const row = await env.DB.prepare(
        "SELECT member_id AS id FROM member_people WHERE person_id = ?",
      )
        .bind(gone.id)
        .first<{ id: string }>();
      if (row === null) return;
      const session = { personId: gone.id, memberId: row.id, openedAt: now + 1 };
      expect(await findActingPerson(env.DB, session)).toBeNull();
    }),
    { numRuns: effortFor(8, 200) },
  );
});
