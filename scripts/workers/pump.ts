/**
 * A Worker for the bench that copies a response chunk by chunk within waitUntil. Measures the
 * minimum cost of reading a stream.
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
