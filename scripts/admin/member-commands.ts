import { Argument, Option } from "commander";
import type { Command } from "commander";
import { deleteMember, getMembers, patchMember, postMember } from "../admin-client.ts";
import { memberName, organizationName } from "./arguments.ts";
import { ROLES } from "./records.ts";
import type { Role } from "./records.ts";
import { does, examples, group, memberIds, note, organizationId, show } from "./session.ts";
import { fields, memberTable } from "./words.ts";

/** `members ...`: who may do what in an organisation. */
export function addMemberCommands(program: Command): void {
  const members = group(program, "members", "members of an organisation, their roles");
  examples(
    members,
    "members add --local eu example dev@example.com --role member",
    "members list --local eu example",
  );
  addList(members);
  addAdd(members);
  addRole(members);
  addRemove(members);
}

function addList(members: Command): void {
  const list = members
    .command("list")
    .description("members with their roles")
    .argument("<org>", "id or slug", organizationName);
  examples(list, "members list --local eu example");
  does(list, async (session, [org]: [string]) => {
    const answer = await getMembers(session.admin, await organizationId(session, org));
    show(session, answer, () => memberTable(answer.members));
  });
}

function addAdd(members: Command): void {
  const add = members
    .command("add")
    .description("add a member")
    .argument("<org>", "id or slug", organizationName)
    .argument("<email>", "its address")
    .addOption(new Option("--role <role>", "what it may do").choices(ROLES).makeOptionMandatory());
  examples(add, "members add --local eu example dev@example.com --role member");
  does(add, async (session, [org, email]: [string, string], { role }: { role: Role }) => {
    const orgId = await organizationId(session, org);
    const answer = await postMember(session.admin, orgId, { email, role });
    show(session, answer, () =>
      fields([
        ["id", answer.id],
        ["email", answer.email],
        ["role", answer.role],
      ]),
    );
    note(`Added. A key for it: keys create ${org} --member ${answer.email} --name <name>`);
  });
}

function addRole(members: Command): void {
  const role = members
    .command("role")
    .description("change what a member, and so each of its keys, may do")
    .argument("<org>", "id or slug", organizationName)
    .argument("<member>", "id or email address", memberName)
    .addArgument(new Argument("<role>", "its new role").choices(ROLES));
  examples(role, "members role --local eu example dev@example.com billing");
  does(role, async (session, [org, member, newRole]: [string, string, Role]) => {
    const ids = await memberIds(session, org, member);
    const answer = await patchMember(session.admin, ids, { role: newRole });
    show(session, answer, () => memberTable([answer]));
    note(`${answer.email} is now ${answer.role}.`);
  });
}

function addRemove(members: Command): void {
  const remove = members
    .command("remove")
    .description("remove a member and revoke its keys")
    .argument("<org>", "id or slug", organizationName)
    .argument("<member>", "id or email address", memberName);
  examples(remove, "members remove --local eu example dev@example.com");
  does(remove, async (session, [org, member]: [string, string]) => {
    const answer = await deleteMember(session.admin, await memberIds(session, org, member));
    show(session, answer, () => `Removed member ${answer.id}; its keys are revoked.`);
  });
}
