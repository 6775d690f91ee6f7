/** Erases every answer that this browser keeps for this server: on the page that follows leaving, or a device's end. */
import { eraseAllAnswers } from "./kept.js";

eraseAllAnswers();
