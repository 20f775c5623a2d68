
const form = document.getElementById("ask");
const fields = form.elements;
const [go, state, problem, steps, found, about, examples] =
  ["go", "state", "problem", "steps", "found", "about", "try"].map((id) => document.getElementById(id));
let running = null;
// What a filter may ask for, by the names of properties; known once the service has introduced the graph.
const properties = new Map();
// How values of a kind are compared: what the page says, and the operator of a condition.
const comparisons = {
  text: [["is", "$eq"], ["is not", "$ne"], ["contains", "$contains"]],
  number: [["is", "$eq"], ["is at least", "$gte"], ["is at most", "$lte"]],
  truth: [["is", "$eq"]],
  list: [["has", "$contains"]],
};

function seconds(value) {
  return value < 1 ? `${(1000 * value).toFixed(value < 0.01 ? 1 : 0)} ms` : `${value.toFixed(1)} s`;
}

function headers() {
  const key = fields.key ? { Authorization: `Bearer ${fields.key.value}` } : {};
  return { "Content-Type": "application/json", ...key };
}

function complain(text) {
  problem.textContent = text;
}

// What is said of a stage while a retrieval goes on: the calls of an agent, a query, or how much was found.
function told(stage) {
  const calls = (stage.calls || []).map((call) => {
    const given = Object.values(call.arguments || {}).flat().map(String).join(", ");
    return `${call.tool}(${given})`;
  });
  const counts = ["found", "rows", "candidates"].filter((name) => name in stage).map((name) => `${stage[name]} ${name}`);
  return [...calls, stage.error, stage.cypher, stage.search, ...counts].filter(Boolean).join(" · ");
}

function addStep(stage) {
  const line = element("li");
  const name = stage.step ? `agent ${stage.agent}, ${stage.step}` : stage.name;
  line.append(element("b", name), element("span", told(stage)), element("i", stage.seconds ? seconds(stage.seconds) : ""));
  steps.append(line);
}

function times(stages, inner) {
  const longest = Math.max(...stages.map((stage) => stage.seconds), 1e-9);
  const table = element("table");
  table.className = inner ? "times inner" : "times";
  for (const stage of stages) {
    const line = element("tr");
    const name = element("th", stage.name);
    name.scope = "row";
    const bar = element("span");
    bar.className = "bar";
    bar.style.width = `${(100 * stage.seconds) / longest}%`;
    const cell = element("td");
    cell.append(bar);
    const time = element("td");
    time.append(element("i", seconds(stage.seconds)));
    line.append(name, cell, time);
    table.append(line);
  }
  return table;
}

// The time of each stage: those of the method itself, and those within them.
function timing(trace) {
  const section = element("section");
  const timed = trace.stages.filter((stage) => stage.seconds > 0);
  const inner = timed.filter((stage) => stage.name.includes("/"));
  section.append(element("h2", `Time: ${seconds(trace.seconds)}`));
  section.append(times(timed.filter((stage) => !stage.name.includes("/")), false));
  if (inner.length) {
    const more = element("details");
    more.open = inner.length <= 12;
    more.append(element("summary", "Within these"), times(inner, true));
    section.append(more);
  }
  return section;
}

// What `graphret query --explain` writes is a page of its own: its sections are taken from it, and its texts.
function draw(pages) {
  found.replaceChildren(...pages.map((page) => {
    const read = new DOMParser().parseFromString(page, "text/html");
    const part = element("div");
    part.append(...read.querySelectorAll("section"));
    part.querySelectorAll("details").forEach((one) => { one.open = false; });
    wire(part, JSON.parse(read.getElementById("nodes").textContent));
    return part;
  }));
}

async function* events(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const parts = (rest + value).split("\n\n");
    rest = parts.pop();
    for (const part of parts) {
      const [, name, data] = /^event: (\w+)\ndata: (.*)$/s.exec(part) || [];
      if (name) yield [name, JSON.parse(data)];
    }
  }
}

async function ask(asked, signal) {
  const response = await fetch("retrieve/stream?drawn=true", {
    method: "POST", headers: headers(), body: JSON.stringify(asked), signal,
  });
  if (!response.ok) {
    const said = await response.json();
    if (response.status === 401 && fields.key) fields.key.focus();
    throw new Error(said.detail);
  }
  let result = null;
  for await (const [name, value] of events(response)) {
    if (name === "stage") addStep(value);
    else if (name === "problem") throw new Error(value.detail);
    else if (name === "result") result = value;
    else draw(value.pages);
  }
  if (!result) throw new Error("the answer broke off");
  found.firstElementChild.append(timing(result.trace));
  steps.replaceChildren();
  return result.hits.length;
}

// The value of the filter as its property has it; a list has its items as they are.
function filterValue(property) {
  const written = fields.value.value.trim();
  const known = property.values.find((value) => String(value) === written);
  if (known !== undefined) return known;
  if (property.kind !== "number") return written;
  if (written === "" || Number.isNaN(Number(written))) {
    fields.value.focus();
    throw new Error(`${property.name}: expected a number, got “${written}”`);
  }
  return Number(written);
}

function read() {
  const asked = { query: fields.query.value, k: Number(fields.k.value), method: fields.method.value };
  const property = properties.get(fields.property.value);
  if (property) asked.where = { [property.field]: { [fields.operator.value]: filterValue(property) } };
  return asked;
}

// What the address keeps of a question, so that it can be asked again.
function address() {
  const kept = ["query", "k", "method", ...(fields.property.value ? ["property", "operator", "value"] : [])];
  return `#${new URLSearchParams(kept.map((name) => [name, fields[name].value]))}`;
}

function option(text, value) {
  const made = element("option", text);
  made.value = value;
  return made;
}

// The comparisons and values of the property that is picked.
function offerValues() {
  const property = properties.get(fields.property.value);
  for (const field of [fields.operator, fields.value]) field.hidden = !property;
  fields.value.required = Boolean(property);
  if (!property) return;
  fields.operator.replaceChildren(...comparisons[property.kind].map(([text, value]) => option(text, value)));
  fields.value.value = "";
  document.getElementById("values").replaceChildren(...property.values.map((value) => option(String(value), String(value))));
}

fields.property.addEventListener("change", offerValues);

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  if (running) {
    running.abort();
    return;
  }
  const own = running = new AbortController();
  const began = performance.now();
  const clock = () => { state.textContent = `Asking, ${((performance.now() - began) / 1000).toFixed(1)} s`; };
  const ticking = setInterval(clock, 100);
  complain("");
  steps.replaceChildren();
  found.replaceChildren();
  about.hidden = examples.hidden = true;
  state.className = "busy";
  go.textContent = "Stop";
  go.className = "stop";
  let said = "";
  try {
    const asked = read();
    history.replaceState(null, "", address());
    if (fields.key) sessionStorage.setItem("key", fields.key.value);
    if (!properties.size) await introduce();
    const n = await ask(asked, own.signal);
    said = `${n ? n + (n === 1 ? " hit" : " hits") : "Nothing qualifies"}, ${seconds((performance.now() - began) / 1000)}`;
  } catch (error) {
    said = own.signal.aborted ? "Stopped" : "";
    if (!own.signal.aborted) complain(error.message);
  } finally {
    clearInterval(ticking);
    state.className = "";
    state.textContent = said;
    go.textContent = "Ask";
    go.className = "";
    running = null;
  }
});

fields.query.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    form.requestSubmit();
  }
});

document.addEventListener("keydown", (event) => {
  const writing = /^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement.tagName);
  if (event.key === "/" && !writing && !dialog.open) {
    event.preventDefault();
    fields.query.select();
  }
});

// What there is to ask about: the graph's name and size, questions to try, the values to filter by, and its labels and
// relations, the most frequent first.
async function introduce() {
  const response = await fetch("introduction", { headers: headers() });
  if (!response.ok) return;
  const graph = await response.json();
  document.title = `${graph.name} · graphret`;
  document.getElementById("name").textContent = graph.name;
  document.getElementById("size").textContent = [counted(graph.nodes, "node"), counted(graph.edges, "edge")].join(", ");
  for (const property of graph.properties) {
    properties.set(property.name, property);
    fields.property.append(option(property.name, property.name));
  }
  document.getElementById("filter").hidden = false;
  offerValues();
  if (running || found.childElementCount) return;
  offerQuestions(graph.questions);
  introduceContents(graph);
}

function counted(n, what) {
  return `${n.toLocaleString("en")} ${what}${n === 1 ? "" : "s"}`;
}

function offerQuestions(questions) {
  for (const question of questions) {
    const button = element("button", question);
    button.type = "button";
    button.addEventListener("click", () => {
      fields.query.value = question;
      form.requestSubmit();
    });
    examples.lastElementChild.append(button);
  }
  examples.hidden = !questions.length;
}

function introduceContents(graph) {
  for (const [title, counts] of [["Nodes", graph.labels], ["Edges", graph.relations]]) {
    const named = Object.entries(counts).sort((a, b) => b[1] - a[1]).slice(0, 24);
    if (!named.length) continue;
    about.lastElementChild.append(element("p", title));
    for (const [name, n] of named) {
      const chip = element("span", `${name} ${n.toLocaleString("en")}`);
      chip.className = "chip";
      about.lastElementChild.append(chip);
    }
  }
  about.hidden = running || found.childElementCount > 0;
  introduceLinks();
}

// The names that make the links between documents: the commonest, and those to look at where a link is wrong.
async function introduceLinks() {
  const response = await fetch("links", { headers: headers() });
  if (!response.ok) return;
  const names = await response.json();
  for (const [title, links] of [["Names that link most", names.commonest], ["Links believed least", names.doubtful]]) {
    if (!links || !links.length) continue;
    const block = element("details");
    block.append(element("summary", title));
    for (const link of links) {
      const count = `${link.edges.toLocaleString()} ${link.edges === 1 ? "link" : "links"}, weight ${link.weight.toFixed(2)}`;
      const line = element("p", `${link.source} → ${link.target} · ${count}`);
      line.prepend(element("b", link.name), " ");
      block.append(line);
    }
    about.lastElementChild.append(block);
  }
}

// A question in the address is asked again, with its filter, once the graph has said what there is to filter by.
async function begin() {
  const asked = new URLSearchParams(location.hash.slice(1));
  const fill = (names) => names.forEach((name) => { if (asked.has(name)) fields[name].value = asked.get(name); });
  if (fields.key) fields.key.value = sessionStorage.getItem("key") || "";
  fill(["query", "k", "method"]);
  if (fields.key && !fields.key.value) return;
  await introduce();
  fill(["property"]);
  offerValues();
  fill(["operator", "value"]);
  // Submitted while a question is asked, the form would stop it.
  if (asked.get("query") && !running) form.requestSubmit();
}

begin();
