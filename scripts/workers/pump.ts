/**
 * A bare pump for the bench: the floor that also sees what it passes on. It reads an answer and writes
 * it on chunk by chunk, within waitUntil, and looks at nothing: the price of seeing a stream at all.
 */
export default {
  async fetch(request, env, ctx) {
    const answer = await fetch(env.UPSTREAM + new URL(request.url).pathname, request);
    if (answer.body === null) return answer;
    const { readable, writable } = new IdentityTransformStream();
    ctx.waitUntil(pump(answer.body.getReader(), writable.getWriter()));
    return new Response(readable, answer);
  },
} satisfies ExportedHandler<{ readonly UPSTREAM: string }>;

async function pump(
  from: ReadableStreamDefaultReader<Uint8Array>,
  to: WritableStreamDefaultWriter<Uint8Array>,
): Promise<void> {
  for (;;) {
    const chunk = await from.read();
    if (chunk.done) break;
    await to.write(chunk.value);
  }
  await to.close();
}
