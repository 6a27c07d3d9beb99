// The official JavaScript client of OpenAI's interface: asks whole and streamed, and shows what it got.
// Called with the folder that holds node_modules, the base URL and a question; prints one JSON object.
const { createRequire } = require("node:module");
const path = require("node:path");

async function main([folder, baseURL, question]) {
  const OpenAI = createRequire(path.join(folder, "package.json"))("openai");
  const client = new OpenAI({ baseURL, apiKey: "none is needed", maxRetries: 0 });
  const models = [];
  for await (const model of client.models.list()) models.push(model.id);
  const request = { model: models[0], messages: [{ role: "user", content: question }] };
  const whole = await client.chat.completions.create(request);
  const stream = await client.chat.completions.create({
    ...request,
    stream: true,
    stream_options: { include_usage: true },
  });
  let streamed = "";
  let usage = null;
  for await (const chunk of stream) {
    streamed += chunk.choices[0]?.delta?.content ?? "";
    usage = chunk.usage ?? usage;
  }
  const collected = await client.chat.completions.stream(request).finalChatCompletion();
  const refused = await client.chat.completions
    .create({ ...request, model: "no such model" })
    .catch((error) => ({ kind: error.constructor.name, status: error.status, code: error.code }));
  console.log(
    JSON.stringify({
      models,
      whole: whole.choices[0].message.content,
      reason: whole.choices[0].finish_reason,
      streamed,
      collected: collected.choices[0].message.content,
      sameUsage: JSON.stringify(usage) === JSON.stringify(whole.usage),
      refused,
    }),
  );
}

main(process.argv.slice(2));
