(() => {
  "use strict";

  const config = {
    displaylogo: false,
    responsive: true,
    displayModeBar: "hover",
    // Named one by one: plotly's own set has buttons that leave the page.
    modeBarButtons: [["toImage", "zoom2d", "pan2d", "zoomIn2d", "zoomOut2d", "resetScale2d"]],
    toImageButtonOptions: { format: "svg" },
  };
  const A4_WIDTH = 680;
  // Of a figure's height: two, or one over time and a table, fit on a page.
  const ON_PAPER = 0.72;
  const LEGEND_LINE = 15;

  const token = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  // The style sheet alone decides about colours; a figure takes them from there, in light, dark and print.
  const themed = (layout) => {
    const out = {
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: token("--sans"), size: 13, color: token("--text") },
      colorway: ["#0072B2"],
      hoverlabel: { align: "left", bgcolor: token("--raised"), bordercolor: token("--line"), font: { color: token("--text") } },
      modebar: { bgcolor: "rgba(0,0,0,0)", color: token("--quiet"), activecolor: token("--text") },
    };
    for (const key of Object.keys(layout)) {
      if (/^[xy]axis\d*$/.test(key)) {
        out[key] = {
          ...layout[key],
          gridcolor: token("--grid"),
          linecolor: token("--line"),
          zerolinecolor: token("--line"),
          tickfont: { color: token("--quiet"), size: 12 },
          title: { ...layout[key].title, font: { size: 13 }, standoff: 10 },
        };
      }
    }
    return { ...layout, ...out };
  };

  // On a phone the words at marks would lie over one another; the caption has them all.
  const narrow = (layout, width, names) =>
    width < 480
      ? {
          ...layout,
          height: layout.height + LEGEND_LINE * names,
          margin: { ...layout.margin, l: 52, r: 8 },
          annotations: unmarked(layout),
        }
      : layout;
  const unmarked = (layout) => layout.annotations?.filter((each) => each.xref !== "x");

  const named = (traces) => traces.filter((trace) => trace.showlegend !== false).length;

  class Slot {
    constructor(element) {
      this.element = element;
      this.plot = element.querySelector(".plot");
      this.data = [...element.querySelectorAll('script[type="application/json"]')];
      this.select = element.querySelector("select");
      this.toggle = element.querySelector("button[data-scale]");
      this.folded = element.closest("details");
      this.logarithmic = false;
      this.select?.addEventListener("change", () => this.draw());
      this.toggle?.addEventListener("click", () => {
        this.logarithmic = !this.logarithmic;
        this.toggle.setAttribute("aria-pressed", String(this.logarithmic));
        this.draw();
      });
    }

    draw(width) {
      const chosen = this.data[this.select ? this.select.selectedIndex : 0];
      const figure = JSON.parse(chosen.textContent);
      let layout = narrow(themed(figure.layout), width ?? this.plot.clientWidth, named(figure.data));
      if (this.logarithmic) layout = { ...layout, yaxis: { ...layout.yaxis, type: "log", rangemode: "normal" } };
      if (width !== undefined) layout = { ...layout, width, height: layout.height * ON_PAPER, autosize: false };
      return Plotly.react(this.plot, figure.data, layout, { ...config, toImageButtonOptions: { format: "svg", filename: this.element.id } });
    }
  }

  const slots = [...document.querySelectorAll("figure[data-figure]")].map((element) => new Slot(element));
  const visible = () => slots.filter((slot) => !slot.folded || slot.folded.open);
  const drawAll = (width) => Promise.all(visible().map((slot) => slot.draw(width)));

  // One figure a turn, so that the page can be read and scrolled while the rest is drawn.
  const drawInTurn = async (which) => {
    for (const slot of which) {
      await slot.draw();
      await new Promise((resolve) => setTimeout(resolve));
    }
  };

  for (const details of document.querySelectorAll("details.more")) {
    details.addEventListener("toggle", () => {
      delete details.dataset.figures;
      const own = slots.filter((slot) => slot.folded === details);
      if (details.open) drawInTurn(own).then(() => (details.dataset.figures = "drawn"));
    });
  }

  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => drawAll());

  addEventListener("beforeprint", () => drawAll(A4_WIDTH));
  addEventListener("afterprint", () => drawAll());

  drawInTurn(visible()).then(() => (document.documentElement.dataset.figures = "drawn"));
})();
