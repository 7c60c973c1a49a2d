import type { Command } from "commander";
import { callAdmin } from "../admin-client.ts";
import type { AdminAnswer } from "../admin-client.ts";
import { isId } from "./arguments.ts";
import { targetOf } from "./target.ts";
import type { Place } from "./target.ts";
import type { AdminClient } from "./transport.ts";

const LIST_PAGE = 100;

export type Session = {
  readonly admin: AdminClient;
  /** Whether to print responses as JSON. */
  readonly json: boolean;
};

/** Thrown if a name doesn't exist in this region. */
export class NotFound extends Error {}

/**
 * Sets a command's action. `handle` receives the session, the arguments in order and the options.
 * The command's declaration determines their types.
 */
export function setAction(
  command: Command,
  handle: (session: Session, given: never, options: never) => Promise<void>,
): Command {
  return command.action(async () => {
    const options = command.optsWithGlobals<Place & { json?: true }>();
    const session = { admin: targetOf(options, process.env), json: options.json === true };
    await handle(session, command.processedArgs as never, options as never);
  });
}

/** Adds a command that only contains other commands. */
export function group(program: Command, name: string, description: string): Command {
  return program.command(name).description(description).helpCommand(false);
}

/** Adds examples at the end of a command's help. */
export function examples(command: Command, ...lines: readonly string[]): Command {
  const text = lines.map((line) => `  npm run -s admin -- ${line}`).join("\n");
  return command.addHelpText("after", `\nExamples:\n${text}`);
}

/** Prints a response, or its JSON with `--json`. */
export function printResult(session: Session, answer: object, words: () => string): void {
  printLine(session.json ? JSON.stringify(answer) : words());
}

/** Prints a line to standard output. */
export function printLine(text: string): void {
  process.stdout.write(`${text}\n`);
}

/** Prints a line to standard error. */
export function printNote(text: string): void {
  process.stderr.write(`${text}\n`);
}

/** Sets exit code 1 without stopping the program. */
export function setFailed(): void {
  process.exitCode = 1;
}

/** Returns the ID of an organization's member given by ID or email address. Throws `NotFound`. */
export async function memberId(session: Session, org: string, member: string): Promise<string> {
  if (isId(member)) return member;
  const { members } = await callAdmin(session.admin, "GET /orgs/{id}/members", { ids: [org] });
  const found = members.find(({ email }) => email.toLowerCase() === member.toLowerCase());
  if (found === undefined) throw new NotFound(`${org} has no member with this email address.`);
  return found.id;
}

/** Yields every organization of the region, page by page. */
export async function* organizations(
  session: Session,
): AsyncGenerator<AdminAnswer<"GET /orgs">["organizations"][number]> {
  for (let offset = 0; ; offset += LIST_PAGE) {
    const query = { limit: LIST_PAGE, offset };
    const page = await callAdmin(session.admin, "GET /orgs", { query });
    yield* page.organizations;
    if (page.organizations.length < LIST_PAGE) return;
  }
}
