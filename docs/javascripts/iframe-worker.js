// Browsers refuse workers on pages opened from a disk (file://), and the site's search runs in one. Where that is so, this
// stands in for Worker: the worker's script runs in a hidden frame, and messages are handed to and fro.
(function () {
  if (location.protocol !== "file:") return;

  class IFrameWorker extends EventTarget {
    constructor(url) {
      super();
      this.waiting = [];
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.appendChild(frame);
      this.inner = frame.contentWindow;
      this.inner.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      const script = this.inner.document.createElement("script");
      script.src = new URL(url, location.href).href;
      script.onload = () => {
        this.ready = true;
        this.waiting.splice(0).forEach((data) => this.postMessage(data));
      };
      this.inner.document.body.appendChild(script);
    }

    postMessage(data) {
      if (this.ready) this.inner.dispatchEvent(new MessageEvent("message", { data }));
      else this.waiting.push(data);
    }
  }

  window.IFrameWorker = window.Worker = IFrameWorker;
})();
