/** One line on the terminal that is written over, or one line each where nobody watches; "" clears it. */
export function progress(what: string): void {
  if (process.stderr.isTTY) process.stderr.write(`\r\u001b[K${what}`);
  else if (what !== "") process.stderr.write(`${what}\n`);
}
