"use strict";
(() => {
  const root = document.documentElement;
  const dark = matchMedia("(prefers-color-scheme: dark)");

  // Colours of the page for what Plotly draws: a probe resolves variables that depend on the theme.
  const probe = document.createElement("span");
  probe.hidden = true;
  document.body.append(probe);
  const colour = (name) => {
    probe.style.color = `var(${name})`;
    return getComputedStyle(probe).color;
  };
  const themed = (layout) => {
    const ink = colour("--ink"), line = colour("--line"), sheet = colour("--paper");
    const found = {
      ...layout, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      font: {family: getComputedStyle(document.body).fontFamily, size: 13, color: ink},
      hoverlabel: {bgcolor: sheet, bordercolor: line, font: {color: ink}},
    };
    for (const axis of Object.keys(layout).filter((key) => /^[xy]axis\d*$/.test(key)))
      found[axis] = {...layout[axis], gridcolor: line, linecolor: line, zerolinecolor: line};
    return found;
  };

  // Charts are drawn when they are first seen: Plotly needs their width.
  const drawn = new Map();
  const config = {displayModeBar: false, responsive: true, doubleClick: false};
  const NARROW = 560, WIDE = 800, LEGEND_LINE = 19;
  // A chart with a legend for each row has one for all of them where these would not fit into a line.
  const traces = (chart, state) =>
    state.legends && chart.clientWidth < WIDE ? state.data.map(({legend, ...trace}) => trace) : state.data;
  // On a narrow page a legend is a column, and what is written behind bars takes a larger part of the width.
  const fitted = (chart, state, layout) => {
    if (chart.clientWidth >= NARROW) return layout;
    const entries = state.data.filter((trace) => trace.showlegend !== false).length;
    const found = {...layout, height: layout.height + LEGEND_LINE * entries};
    if (state.end) found.xaxis = {...found.xaxis, range: [0, 1.75 * state.end], nticks: 4};
    return found;
  };
  const visible = (chart) => chart.offsetParent !== null;
  const block = (chart) => chart.closest(".block");
  // With a box of its own units a drawing takes the width that paper has.
  const scale = (chart) => {
    const {width, height} = chart._fullLayout;
    chart.querySelectorAll(".main-svg").forEach((svg) => svg.setAttribute("viewBox", `0 0 ${width} ${height}`));
    chart.style.setProperty("--ratio", `${width} / ${height}`);
  };
  const draw = (chart) => {
    const data = JSON.parse(document.getElementById(`${chart.id}-data`).textContent);
    const state = {...data, whole: data.zoom ? [...data.layout[data.zoom[0]].range] : null};
    drawn.set(chart, state);
    const range = data.zoom && block(chart).shownRange;
    if (range) for (const axis of data.zoom) data.layout[axis].range = [...range];
    Plotly.newPlot(chart, traces(chart, data), themed(fitted(chart, data, data.layout)), config);
    scale(chart);
    // Plotly measures texts in a drawing of its own, off the page, which is nothing to read.
    document.getElementById("js-plotly-tester")?.setAttribute("aria-hidden", "true");
    chart.on("plotly_afterplot", () => scale(chart));
    if (!data.zoom) return;
    say(chart, range || state.whole);
    chart.on("plotly_relayout", (change) => {
      const [from, to] = [0, 1].map((end) => data.zoom.map((axis) => change[`${axis}.range[${end}]`]).find(isFinite));
      if (from !== undefined && to !== undefined) show(chart, [from, to], chart);
    });
    chart.on("plotly_doubleclick", () => show(chart, state.whole));
  };
  const drawVisible = () => document.querySelectorAll(".chart").forEach((chart) => {
    if (!drawn.has(chart) && visible(chart)) draw(chart);
    else if (drawn.has(chart) && visible(chart)) Plotly.Plots.resize(chart);
  });
  const paint = (theme) => {
    const before = root.dataset.theme;
    if (theme) root.dataset.theme = theme;
    drawn.forEach((state, chart) => {
      const current = {...state.layout};
      for (const axis of state.zoom || []) current[axis] = {...current[axis], range: [...chart.layout[axis].range]};
      Plotly.react(chart, traces(chart, state), themed(fitted(chart, state, current)), config);
    });
    if (!theme) return;
    if (before) root.dataset.theme = before;
    else delete root.dataset.theme;
  };

  // One part of the time for all charts of a block.
  const say = (chart, range) => {
    const figures = new Intl.NumberFormat("en", {maximumSignificantDigits: 4, useGrouping: false});
    const text = range.map((end) => figures.format(end)).join(" to ");
    chart.closest("figure").querySelector(".shown").textContent = `${text} ${drawn.get(chart).unit}`;
  };
  const show = (source, range, except) => {
    block(source).shownRange = range;
    block(source).querySelectorAll(".zooms").forEach((chart) => {
      const state = drawn.get(chart);
      if (!state) return;
      say(chart, range);
      const [from, to] = chart.layout[state.zoom[0]].range;
      if (chart !== except && (from !== range[0] || to !== range[1]))
        Plotly.relayout(chart, Object.fromEntries(state.zoom.map((axis) => [`${axis}.range`, [...range]])));
    });
  };
  const steps = {
    in: ([from, to]) => [from + (to - from) / 4, to - (to - from) / 4],
    out: ([from, to]) => [from - (to - from) / 2, to + (to - from) / 2],
    earlier: ([from, to]) => [from - (to - from) / 2, to - (to - from) / 2],
    later: ([from, to]) => [from + (to - from) / 2, to + (to - from) / 2],
  };
  const within = ([from, to], [first, last]) => {
    const length = Math.min(to - from, last - first);
    const start = Math.min(Math.max(from, first), last - length);
    return [start, start + length];
  };
  document.querySelectorAll("[data-zoom]").forEach((button) => button.addEventListener("click", () => {
    const chart = document.getElementById(button.getAttribute("aria-controls"));
    const state = drawn.get(chart);
    if (!state) return;
    const now = chart.layout[state.zoom[0]].range;
    const step = steps[button.dataset.zoom];
    show(chart, step ? within(step(now), state.whole) : state.whole);
  }));

  // Tabs as the ARIA Authoring Practices have them: arrows, Home and End move, and select at once.
  const select = (tab) => {
    const list = tab.parentElement;
    for (const other of list.children) {
      const chosen = other === tab;
      other.setAttribute("aria-selected", chosen);
      other.tabIndex = chosen ? 0 : -1;
      document.getElementById(other.getAttribute("aria-controls")).hidden = !chosen;
    }
    drawVisible();
  };
  document.querySelectorAll('[role="tablist"]').forEach((list) => {
    const tabs = [...list.children];
    for (const [index, tab] of tabs.entries()) {
      tab.addEventListener("click", () => select(tab));
      tab.addEventListener("keydown", (event) => {
        const next = {ArrowRight: index + 1, ArrowLeft: index - 1, Home: 0, End: tabs.length - 1}[event.key];
        if (next === undefined) return;
        event.preventDefault();
        const other = tabs[(next + tabs.length) % tabs.length];
        other.focus();
        select(other);
      });
    }
    for (const tab of tabs.slice(1)) document.getElementById(tab.getAttribute("aria-controls")).hidden = true;
  });

  // A choice of one of many: all others of the section that are about the same thing follow.
  const choose = (source) => {
    for (const select of source.closest(".report").querySelectorAll("select[data-choice]")) {
      if (select.dataset.choice !== source.dataset.choice) continue;
      const index = [...select.options].findIndex((option) => option.value === source.value);
      if (index < 0) continue;
      select.selectedIndex = index;
      const panels = [...select.closest(".choice").children].filter((part) => part.classList.contains("panel"));
      for (const [number, panel] of panels.entries()) panel.hidden = number !== index;
    }
  };
  document.querySelectorAll("select[data-choice]").forEach((select) => {
    choose(select);
    select.addEventListener("change", () => { choose(select); drawVisible(); });
  });

  // Theme: that of the system until the button is used; paper is always light.
  const button = document.getElementById("theme");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : dark.matches);
  const label = () => button.setAttribute("aria-pressed", isDark());
  button.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    label();
    paint();
  });
  dark.addEventListener("change", () => { label(); paint(); });

  // On paper everything that is folded is open, but for values of charts, and charts are in ink.
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("details:not([open]):not(.data)")];
    for (const item of opened) item.open = true;
    if (isDark()) paint("light");
  });
  addEventListener("afterprint", () => {
    for (const item of opened) item.open = false;
    if (isDark()) paint();
  });

  addEventListener("resize", () => paint());
  document.querySelectorAll("details").forEach((item) => item.addEventListener("toggle", drawVisible));
  label();
  drawVisible();
})();
