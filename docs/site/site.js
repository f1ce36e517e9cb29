// The search is a worker, but a page from a disk cannot start workers. There, a hidden frame replaces the worker.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.documentElement.append(this.frame);
      const inner = this.frame.contentWindow;
      // Answer later, as a worker does: an answer during a key press would undo the typing.
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

// Wide tables scroll, so make them reachable by keyboard.
addEventListener("load", () =>
  document.querySelectorAll(".md-typeset__scrollwrap, pre > code").forEach((box) => {
    if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
  })
);
