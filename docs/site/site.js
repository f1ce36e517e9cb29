// A browser lets no page from a disk start a worker, and the search is one. A hidden frame does its work there.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.documentElement.append(this.frame);
      const inner = this.frame.contentWindow;
      // Later, as from a worker: an answer amid a key press would undo what was typed.
      inner.postMessage = (data) => setTimeout(() => this.tell(data));
      this.ready = new Promise((resolve) => {
        const script = inner.document.createElement("script");
        script.src = url;
        script.onload = resolve;
        inner.document.head.append(script);
      });
    }
    tell(data) {
      const message = new MessageEvent("message", { data: structuredClone(data) });
      this.onmessage?.(message);
      this.dispatchEvent(message);
    }
    postMessage(data) {
      const message = new MessageEvent("message", { data: structuredClone(data) });
      this.ready.then(() => setTimeout(() => this.frame.contentWindow?.dispatchEvent(message)));
    }
    terminate() {
      this.frame.remove();
    }
  };
}

// A wide table scrolls, so the keyboard has to reach it.
addEventListener("load", () =>
  document.querySelectorAll(".md-typeset__scrollwrap, pre > code").forEach((box) => {
    if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
  })
);
