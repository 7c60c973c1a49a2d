import type { Command } from "commander";
import { getMembers, getOrganizations } from "../admin-client.ts";
import { isId } from "./arguments.ts";
import type { Organization } from "./records.ts";
import { targetOf } from "./target.ts";
import type { Place } from "./target.ts";
import type { AdminClient } from "./transport.ts";

const LIST_PAGE = 100;

/** The context of a command. */
export type Session = {
  readonly admin: AdminClient;
  /** Whether answers are printed as JSON. */
  readonly json: boolean;
};

/** A name that leads to nothing in this region. */
export class NotFound extends Error {}

/**
 * Gives a command what it does. `handle` gets the region, the command's arguments in order and its
 * options, of the types that the command's declaration gives them.
 */
export function does(
  command: Command,
  handle: (session: Session, given: never, options: never) => Promise<void>,
): Command {
  return command.action(async () => {
    const options = command.optsWithGlobals<Place & { json?: true }>();
    const session = { admin: targetOf(options, process.env), json: options.json === true };
    await handle(session, command.processedArgs as never, options as never);
  });
}

/** A command that only holds others. */
export function group(program: Command, name: string, description: string): Command {
  return program.command(name).description(description).helpCommand(false);
}

/** Examples at the end of a command's help. */
export function examples(command: Command, ...lines: readonly string[]): Command {
  const text = lines.map((line) => `  npm run -s admin -- ${line}`).join("\n");
  return command.addHelpText("after", `\nExamples:\n${text}`);
}

/** Prints an answer, with `--json` unchanged. */
export function show(session: Session, answer: object, words: () => string): void {
  say(session.json ? JSON.stringify(answer) : words());
}

/** Prints a result. */
export function say(text: string): void {
  process.stdout.write(`${text}\n`);
}

/** Prints a note next to the result. */
export function note(text: string): void {
  process.stderr.write(`${text}\n`);
}

/** The program will end with 1, though it goes on. */
export function fail(): void {
  process.exitCode = 1;
}

/** The id of a member who is named by id or email address, of this organization. Throws `NotFound`. */
export async function memberId(session: Session, org: string, member: string): Promise<string> {
  if (isId(member)) return member;
  const { members } = await getMembers(session.admin, org);
  const found = members.find(({ email }) => email.toLowerCase() === member.toLowerCase());
  if (found === undefined) throw new NotFound(`No member of ${org} has this address.`);
  return found.id;
}

/** Every organization of the region, page by page. */
export async function* organizations(
  session: Session,
): AsyncGenerator<Pick<Organization, "id" | "slug">> {
  for (let offset = 0; ; offset += LIST_PAGE) {
    const page = await getOrganizations(session.admin, { limit: LIST_PAGE, offset });
    yield* page.organizations;
    if (page.organizations.length < LIST_PAGE) return;
  }
}
